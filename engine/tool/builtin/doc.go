// Package builtin is the kind of tools that run inside the process: files of one folder, a page of the web, the long-term
// memory, a calculator, the time, and the Go functions that a program adds with New.
//
//	tools:
//	  read_notes:
//	    builtin: {name: read_file, root: notes}
//	  read_web:
//	    builtin: {name: http_get, hosts: [example.com, "*.example.org"]}
//	  calculator:
//	    builtin: {name: calculator}
//
//	read_file    {path}            read        the text of a file
//	write_file   {path, content}   idempotent  {bytes}
//	append_file  {path, content}   write       {bytes}, those that were added
//	edit_file    {path, old, new}  write       {replaced: 1, bytes}, those of the whole file
//	list_dir     {path?}           read        a list of {name, dir, size}
//	search_files {pattern, glob?}  read        {hits: a list of {path, line, text}, more, skipped}
//	http_get     {url}             read        {url, type, text}, of the page where the redirects ended
//	remember     {key, value, version?}  idempotent  {key}
//	recall       {query?, key?, limit?}  read        a list of {key, value, version, updated_at}
//	forget       {key, version?}         idempotent  {forgotten}
//	calculator   {expression}      read        a number
//	current_time {zone?}           read        RFC 3339 text
//
// The file tools never leave their folder, whatever the path says and wherever its links lead, and touch plain files of
// up to 1 MiB only. Hidden files and folders, whose names begin with a dot, are left alone. In the flow's own folder they do
// not change what may belong to the flow or its databases (*.yaml, *.yml, *.sql, *.db and what SQLite puts beside a database).
//
// http_get asks the hosts of its declaration only, by http or https, and follows redirects to them only. A host that a
// pattern such as *.example.org lets in must have a public address; it is looked at when the connection is made, so that no
// name can change its meaning in between. A host that is named literally may be anywhere, also in the own network. Where a
// proxy is set, it is used for these hosts only.
//
// remember, recall and forget work in the namespace that the flow declares under memory, and nowhere else. What they write
// is stored in one commit with their result.
//
// Read builtin.go first, then files.go. allow.go says which files are left alone; edit.go and search.go are the other file tools; get.go is http_get, and hosts.go
// says whom it may ask; memory.go is the long-term memory.
package builtin
