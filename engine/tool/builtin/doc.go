// Package builtin is the kind of tools that run inside the process: files of one folder, a calculator, the time, and the
// Go functions that a program adds with New.
//
//	tools:
//	  read_notes:
//	    builtin: {name: read_file, root: notes}
//	  calculator:
//	    builtin: {name: calculator}
//
//	read_file    {path}           read        the text of a file
//	write_file   {path, content}  idempotent  {bytes}
//	list_dir     {path?}          read        a list of {name, dir, size}
//	calculator   {expression}     read        a number
//	current_time {zone?}          read        RFC 3339 text
//
// The file tools never leave their folder, whatever the path says and wherever its links lead, and touch plain files
// only. Read builtin.go first, then files.go.
package builtin
