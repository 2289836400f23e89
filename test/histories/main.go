// Judges histories by porcupine. A history is sound if its operations have an order, each at some moment between its call
// and its return, in which every answer is the model's.
//
//	judge FILE    JSON lines, each an operation; exits with 1 if a history has no such order
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Timeout of one history. A history that is not judged by then has failed.
const checkTimeout = 30 * time.Second

// One operation, as test/support/feed-load.js and run.js record it.
type operation struct {
	Model  string // register, list
	Key    string // the feed, log or mailbox
	Client int
	Call   int64
	Return int64
	Op     string // put, swap, get; append, read
	// register
	Server int
	Value  string
	Expect string // swap: the value that must be the newest
	Ok     bool   // swap: Expect was the newest value
	// register: the version of the value, 0: none. list: the length of the list after the operation, 0: not known
	Version int
	// list
	After int // length of the list that the reader has read before
	Items []string
}

// A feed of a world: a register with a copy at each server. A copy may be stale, and never goes back. Each write comes after
// the newest one, at whichever server. The server of a write may get the version later than another server. It has the
// version when it answers, and that answer is a get, too (run.js).
type register struct {
	newest int
	value  string
	copies [3]int
}

func (r register) step(o operation) (bool, register) {
	next := r
	switch o.Op {
	case "get":
		next.copies[o.Server] = o.Version
		return r.copies[o.Server] <= o.Version && o.Version <= r.newest, next
	case "swap":
		if !o.Ok {
			return r.value != o.Expect, r
		}
		if r.value != o.Expect {
			return false, r
		}
	}
	next.newest, next.value = o.Version, o.Value
	return o.Version > r.newest, next
}

// A log, or the mailbox of a client: a list that only grows. A read returns all items behind those read before.
type list []string

func (l list) step(o operation) (bool, list) {
	if o.Op == "append" {
		next := append(l[:len(l):len(l)], o.Items...)
		return o.Version == 0 || o.Version == len(next), next
	}
	if o.Version != len(l) || o.After > len(l) || len(l)-o.After != len(o.Items) {
		return false, l
	}
	for at, item := range o.Items {
		if l[o.After+at] != item {
			return false, l
		}
	}
	return true, l
}

func isEqual(a, b interface{}) bool {
	if one, isList := a.(list); isList {
		other := b.(list)
		if len(one) != len(other) {
			return false
		}
		for at := len(one) - 1; at >= 0; at-- {
			if one[at] != other[at] {
				return false
			}
		}
		return true
	}
	return a == b
}

var models = map[string]porcupine.Model{
	"register": {
		Init: func() interface{} { return register{} },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			ok, next := state.(register).step(input.(operation))
			return ok, next
		},
		Equal: isEqual,
	},
	"list": {
		Init: func() interface{} { return list{} },
		Step: func(state, input, _ interface{}) (bool, interface{}) {
			ok, next := state.(list).step(input.(operation))
			return ok, next
		},
		Equal: isEqual,
	},
}

func readHistories(name string) (map[[2]string][]porcupine.Operation, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	histories := map[[2]string][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var o operation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, err
		}
		subject := [2]string{o.Model, o.Key}
		histories[subject] = append(histories[subject],
			porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return})
	}
	return histories, lines.Err()
}

func main() {
	histories, err := readHistories(os.Args[1])
	if err != nil || len(histories) == 0 {
		fmt.Println("no history:", err)
		os.Exit(2)
	}
	var subjects [][2]string
	for subject := range histories {
		subjects = append(subjects, subject)
	}
	sort.Slice(subjects, func(i, j int) bool {
		return subjects[i][0]+subjects[i][1] < subjects[j][0]+subjects[j][1]
	})
	failed := false
	for _, subject := range subjects {
		history := histories[subject]
		result := porcupine.CheckOperationsTimeout(models[subject[0]], history, checkTimeout)
		failed = failed || result != porcupine.Ok
		fmt.Printf("%s: %s as a %s, %d operations\n", result, subject[1], subject[0], len(history))
	}
	if failed {
		os.Exit(1)
	}
}
