// Command exec is the program of the pipeline in pawl.yaml: it counts lines and words.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"strings"
)

func main() {
	count := struct {
		Key   string `json:"key"`
		Lines int    `json:"lines"`
		Words int    `json:"words"`
	}{Key: os.Getenv("PAWL_KEY")}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		count.Lines++
		count.Words += len(strings.Fields(in.Text()))
	}
	if err := in.Err(); err != nil {
		log.Fatal(err) // Pawl retries after a failure
	}
	if err := json.NewEncoder(os.Stdout).Encode(count); err != nil {
		log.Fatal(err)
	}
}
