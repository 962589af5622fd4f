package installer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// Store keeps the journal: host.Store on a host. Save is atomic and durable when it returns.
type Store interface {
	// Name is for error messages: the path of the file.
	Name() string
	// Load returns what Save stored last, or fs.ErrNotExist.
	Load() ([]byte, error)
	Save([]byte) error
	// Remove removes the file and whatever Save made to hold it; nothing there is no error.
	Remove() error
}

// JournalSchema is the format of the journal. Each format that was ever released stays readable:
// a fixture of it is in testdata.
const JournalSchema = "minhost/v1/journal"

type journalFile struct {
	Schema  string   `json:"schema"`
	Records []Record `json:"records"`
}

// journal is the file in memory. Records are in the order of the steps: Undo walks it backwards.
type journal struct {
	store   Store
	rank    map[ID]int
	records []Record
	saved   []byte
}

// CorruptError is a journal that cannot be read as one. Nothing is guessed from it: a wrong guess
// would delete files that are not minhost's.
type CorruptError struct {
	Path  string
	Cause error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s: %v; nothing was changed; restore the file from a backup, or read it and "+
		"move it away: minhost then treats the host as one it never touched", e.Path, e.Cause)
}

func (e *CorruptError) Unwrap() error { return e.Cause }

// openJournal reads the journal; none is an empty one.
func openJournal(store Store, rank map[ID]int) (*journal, error) {
	j := &journal{store: store, rank: rank}
	b, err := store.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", store.Name(), err)
	}
	if j.records, err = parseJournal(b); err != nil {
		return nil, &CorruptError{Path: store.Name(), Cause: err}
	}
	j.saved = b
	return j, nil
}

func parseJournal(b []byte) ([]Record, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if head.Schema != JournalSchema {
		return nil, fmt.Errorf("schema %q is not %q: another version of minhost wrote it", head.Schema, JournalSchema)
	}
	var f journalFile
	d := json.NewDecoder(bytes.NewReader(b))
	// A field that this version does not know would be lost at the next Save.
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	seen := map[ID]bool{}
	for i, r := range f.Records {
		switch {
		case r.Step == "":
			return nil, fmt.Errorf("record %d names no step", i)
		case seen[r.Step]:
			return nil, fmt.Errorf("step %q is there twice", r.Step)
		case r.Lifetime != Persistent.String() && r.Lifetime != Boot.String():
			return nil, fmt.Errorf("step %q has the unknown lifetime %q", r.Step, r.Lifetime)
		}
		seen[r.Step] = true
	}
	return f.Records, nil
}

func (j *journal) find(id ID) (Record, bool) {
	i := j.index(id)
	if i < 0 {
		return Record{}, false
	}
	return j.records[i], true
}

func (j *journal) index(id ID) int {
	return slices.IndexFunc(j.records, func(r Record) bool { return r.Step == id })
}

// put stores one record, in the place that the order of the steps gives it.
func (j *journal) put(r Record) error {
	r.save = nil
	if i := j.index(r.Step); i >= 0 {
		j.records[i] = r
		return j.save()
	}
	at := slices.IndexFunc(j.records, func(o Record) bool {
		rank, known := j.rank[o.Step]
		return known && rank > j.rank[r.Step]
	})
	if at < 0 {
		at = len(j.records)
	}
	j.records = slices.Insert(j.records, at, r)
	return j.save()
}

// drop forgets one record; with the last one the file goes too.
func (j *journal) drop(id ID) error {
	i := j.index(id)
	if i < 0 {
		return nil
	}
	j.records = slices.Delete(j.records, i, i+1)
	if len(j.records) == 0 {
		return j.remove()
	}
	return j.save()
}

func (j *journal) remove() error {
	if err := j.store.Remove(); err != nil {
		return fmt.Errorf("remove journal %s: %w", j.store.Name(), err)
	}
	j.saved = nil
	return nil
}

// save writes the file unless it already says so.
func (j *journal) save() error {
	b, err := json.MarshalIndent(journalFile{Schema: JournalSchema, Records: j.records}, "", " ")
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.store.Name(), err)
	}
	b = append(b, '\n')
	if bytes.Equal(b, j.saved) {
		return nil
	}
	if err := j.store.Save(b); err != nil {
		return fmt.Errorf("journal %s: %w", j.store.Name(), err)
	}
	j.saved = b
	return nil
}
