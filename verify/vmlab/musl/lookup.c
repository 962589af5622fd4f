/* Prints the IPv4 addresses of a name as programs find them that are linked to musl. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int n, char **v)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *all, *a;
	char text[64];
	int e = n == 2 ? getaddrinfo(v[1], 0, &hints, &all) : EAI_NONAME;

	if (e) {
		fprintf(stderr, "%s\n", gai_strerror(e));
		return 1;
	}
	for (a = all; a; a = a->ai_next)
		puts(inet_ntop(AF_INET, &((struct sockaddr_in *)a->ai_addr)->sin_addr, text, sizeof text));
	return 0;
}
