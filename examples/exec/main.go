// Command exec is what the pipeline of pawl.yaml beside it runs for each text: it
// counts the lines and words of its standard input, and prints them as JSON.
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
		log.Fatal(err) // another attempt is made
	}
	if err := json.NewEncoder(os.Stdout).Encode(count); err != nil {
		log.Fatal(err)
	}
}
