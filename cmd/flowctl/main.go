package main

import "os"

func main() {
	os.Exit(systemProgram().Run(untilSignal(), os.Args[1:]))
}
