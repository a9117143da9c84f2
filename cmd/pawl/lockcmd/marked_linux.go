package lockcmd

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// signalMarked signals the processes whose environment has the mark, wherever they
// have gone, but for those in the groups. It returns how many it found. An
// environment that is another user's cannot be read.
func signalMarked(mark string, s syscall.Signal, but ...int) (found int) {
	for _, pid := range processes() {
		p, err := os.FindProcess(pid) // before looking: its number may be given to another
		if err != nil {
			continue
		}
		if isMarked(pid, mark) {
			if group, err := syscall.Getpgid(pid); err != nil || !slices.Contains(but, group) {
				found++
				_ = p.Signal(s) // it may have ended
			}
		}
		_ = p.Release()
	}
	return found
}

func processes() (pids []int) {
	entries, _ := os.ReadDir("/proc") // without it there is only the group
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func isMarked(pid int, mark string) bool {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // empty when it has ended
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if marks, ok := strings.CutPrefix(string(v), idVariable+"="); ok && slices.Contains(strings.Split(marks, ","), mark) {
			return true
		}
	}
	return false
}

func isGuard(pid int) bool {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty when it has ended
	_, after, _ := bytes.Cut(args, []byte{0})
	name, _, _ := bytes.Cut(after, []byte{0})
	return string(name) == guardName
}

// alone reports that nobody is in this process's group but its ancestors, which
// wait for it, and the guard of a lock around it: no rest of a pipeline, say, which
// may read from the terminal.
func alone() bool {
	parents, members := map[int]int{}, []int(nil)
	group := syscall.Getpgrp()
	for _, pid := range processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		after := bytes.LastIndexByte(text, ')') // the name before may have anything in it
		var state string
		var parent, of int
		if n, _ := fmt.Sscanf(string(text[after+1:]), "%s %d %d", &state, &parent, &of); n != 3 {
			continue
		}
		parents[pid] = parent
		if of == group && state != "Z" && !isGuard(pid) {
			members = append(members, pid)
		}
	}
	line := []int{}
	for pid := os.Getpid(); pid > 0 && !slices.Contains(line, pid); pid = parents[pid] {
		line = append(line, pid)
	}
	return !slices.ContainsFunc(members, func(pid int) bool { return !slices.Contains(line, pid) })
}
