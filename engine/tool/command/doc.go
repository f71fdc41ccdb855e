// Package command is the kind of tools that run one program with arguments, without a shell.
//
//	tools:
//	  find_text:
//	    description: Find a word in the manual.
//	    effect: read
//	    parameters: {word: {type: string}}
//	    command:
//	      args: [grep, -n, -e, "{{ args.word }}", --, manual.txt]
//	      dir: docs
//	      env: {MANUAL_KEY: '{{ env("MANUAL_KEY") }}'}
//
// Each item of args is one argument, whatever its value holds: nothing splits it, expands it or takes it for a second
// command. The program is fixed text: a name is looked up in the PATH at each call, anything with a slash is a path that
// starts from the flow's folder. What a program makes of an argument is its own affair. A value that begins with - may be
// read as an option, so put it behind the option it belongs to (-e above), or write -- before the first value where the
// program knows it.
//
// A command sees no environment but PATH, HOME, LANG, LC_ALL, TZ and TMPDIR as flowctl has them (SYSTEMROOT on Windows),
// FLOWCTL_IDEMPOTENCY_KEY, which is the call's key and the same on every attempt, and what `env` gives it. What comes of
// the environment in `env` is masked in its output.
//
// A tool gives {exit_code, stdout, stderr}, both texts in valid UTF-8 and cut after 1 MiB each. How a call ends:
//
//	                                       read                  idempotent, write
//	exit code 0                            ok                    ok
//	any other exit code                    Failed                Failed
//	killed by a signal                     Failed                Unknown
//	its time was up (timeout)              Failed                Unknown
//	not allowed to go on (cancelled)       Failed                Unknown
//	could not be started                   Unavailable           Unavailable
//	no such arguments can be given         Refused               Refused
//
// All but the last two keep what the command has printed. A program that was killed by a signal has the exit code 128 and
// the signal's number, as in a shell.
//
// A command runs in a process group of its own. When it has to stop, the group gets SIGTERM, and 2 s later SIGKILL; what
// a command leaves behind in its group is killed when it ends. A process that leaves the group goes on, but it cannot
// hold up the call. On Windows there are no such groups: only the program itself is ended.
//
// The kind is for flows that somebody trusts: without Options.Allow, New refuses to make a tool. Read command.go first,
// then run.go, which runs one call; output.go keeps what is printed, and the rest is what differs between systems.
package command
