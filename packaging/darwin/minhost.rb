# Homebrew: brew install --HEAD ./minhost.rb
#
# It puts program and man pages where brew's own user can write them, and changes nothing else. `minhost
# finalize-install` copies the program to a place of root's before root runs it, so that an upgrade by brew
# counts once finalize-install was run again.
class Minhost < Formula
  desc "Network identity for boxes on one machine: addresses, names, egress verdicts"
  homepage "https://github.com/gominimal/minhost"
  license "Apache-2.0"
  head "https://github.com/gominimal/minhost.git", branch: "main"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w -X main.version=#{version}"), "./cmd/minhost"
    man7.install "packaging/man/minhost-runner.7"
    man8.install "packaging/man/minhost.8"
  end

  def caveats
    <<~EOS
      To prepare this Mac (asks once, and for a password once):
        minhost finalize-install
      Before you remove minhost:
        minhost finalize-install --undo
    EOS
  end

  test do
    assert_match "minhost", shell_output("#{bin}/minhost --version")
  end
end
