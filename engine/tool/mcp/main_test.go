package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// TestMain is also the servers that the tests start: with the word server, what they are like, and their arguments.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "server" {
		serve(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is one program that a flow may name as a server.
func serve(what string, args []string) {
	switch what {
	case "good":
		fmt.Fprintln(os.Stderr, "ready", os.Getpid())
		talk()
	case "greets": // prints what does not belong there
		fmt.Println("Welcome to the shop!")
		fmt.Println(`{"level": "info"}`)
		talk()
	case "silent": // until its stdin is closed
		fmt.Println("Loading…")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf": // hears neither the end of its stdin nor SIGTERM
		ignoreTerm()
		select {}
	case "floods":
		for range 2 * maxNoise {
			fmt.Println("usage: shop [options]")
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "dies":
		fmt.Fprintln(os.Stderr, "Error: no license for "+strings.Join(args, " ")+os.Getenv("KEY"))
		fmt.Fprintln(os.Stderr, "v1.2.3")
		os.Exit(3)
	case "dies once": // and is good when the file of the argument is there
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			talk()
			return
		}
		must(f.Close())
		os.Exit(4)
	case "stops reading": // after the first call
		stopsReading()
	case "large": // sends more than a message may hold
		fmt.Print(strings.Repeat("x", maxMessage+1))
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "endless": // lists one tool a page, and always another page
		endless(1)
	case "endless and empty":
		endless(0)
	case "crowded": // lists more tools than anybody needs
		endless(maxTools + 1)
	case "newest": // knows no version of the protocol before the newest
		newest()
	case "parent": // starts another server with its own stdin and stdout, and waits for it
		cmd := exec.Command(os.Args[0], append([]string{"server"}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		must(cmd.Run())
	default:
		panic("a server cannot be " + what)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func talk() { must(shop().Run(context.Background(), &sdk.StdioTransport{})) }

type nothing struct{}

type echoArgs struct {
	Text string `json:"text"`
	Odd  int64  `json:"odd,omitempty"`
}

// shop is a server with one tool for each thing that can happen.
func shop() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	read := &sdk.ToolAnnotations{ReadOnlyHint: true}
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Say it again.", Annotations: read},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoArgs) (*sdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	raw(s, "exact", nil, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: json.RawMessage(req.Params.Arguments)}, nil
	})
	raw(s, "parts", read, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("12345")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("1")},
			&sdk.ResourceLink{URI: "file:///a", Name: "a"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://t", MIMEType: "text/plain", Text: "inner"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://b", MIMEType: "application/zip", Blob: []byte("1234567")}},
			&sdk.TextContent{Text: "two"}}}, nil
	})
	raw(s, "fails", &sdk.ToolAnnotations{IdempotentHint: true}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out := text("the order is closed")
		out.IsError, out.StructuredContent = true, json.RawMessage(`{"order":7}`)
		return out, nil
	})
	raw(s, "refuses", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("not on Sundays")
	})
	raw(s, "waits", nil, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done() // the server's library ends it when the client says so
		return nil, ctx.Err()
	})
	raw(s, "says and waits", nil, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var in struct{ Address string }
		must(json.Unmarshal(req.Params.Arguments, &in))
		conn, err := net.Dial("tcp", in.Address)
		must(err)
		fmt.Fprintln(conn, os.Getpid())
		<-ctx.Done()
		return nil, conn.Close()
	})
	raw(s, "crashes", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "panic: out of paper")
		os.Exit(7)
		return nil, nil
	})
	raw(s, "env", read, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		env := os.Environ()
		sort.Strings(env)
		return text(strings.Join(env, "\n")), nil
	})
	raw(s, "who", read, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		dir, err := os.Getwd()
		must(err)
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{
			"pid": os.Getpid(), "dir": dir, "key": req.Params.Meta[metaKey], "args": req.Params.Arguments}}, nil
	})
	raw(s, "Ünlich.getSum/v2", nil, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("4"), nil })
	return s
}

// raw adds a tool that takes any object.
func raw(s *sdk.Server, name string, hints *sdk.ToolAnnotations, run sdk.ToolHandler) {
	s.AddTool(&sdk.Tool{Name: name, Description: "For a test.", Annotations: hints, InputSchema: json.RawMessage(`{"type":"object"}`)}, run)
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// answers is a server made by hand: it answers each request by its method. A nil answer is none.
func answers(answer func(method string) json.RawMessage) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage
			Method string
		}
		must(json.Unmarshal(line, &req))
		if out := answer(req.Method); len(req.ID) > 0 && out != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", req.ID, out)
		}
	}
}

// stopsReading is a server that answers until its tool is called, and reads nothing from there on.
func stopsReading() {
	answers(func(method string) json.RawMessage {
		switch method {
		case "initialize":
			return json.RawMessage(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
		case "tools/list":
			return json.RawMessage(`"result":{"tools":[{"name":"take","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			select {}
		}
		return json.RawMessage(`"error":{"code":-32601,"message":"unknown"}`)
	})
}

// endless is a server whose list of tools has a number of them on each page and no last page.
func endless(each int) {
	pages := 0
	answers(func(method string) json.RawMessage {
		switch method {
		case "initialize":
			return json.RawMessage(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
		case "tools/list":
			pages++
			tools := make([]string, each)
			for i := range tools {
				tools[i] = fmt.Sprintf(`{"name":"t%d_%d","inputSchema":{"type":"object"}}`, pages, i)
			}
			return json.RawMessage(fmt.Sprintf(`"result":{"tools":[%s],"nextCursor":"%d"}`, strings.Join(tools, ","), pages))
		}
		return json.RawMessage(`"error":{"code":-32601,"message":"unknown"}`)
	})
}

// newest is a server that refuses to begin a session in the old way.
func newest() {
	answers(func(method string) json.RawMessage {
		switch method {
		case "server/discover":
			return json.RawMessage(`"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "tools/list":
			return json.RawMessage(`"result":{"tools":[{"name":"take","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			return json.RawMessage(`"result":{"resultType":"complete","content":[{"type":"text","text":"taken"},{"type":"hologram"}]}`)
		}
		return json.RawMessage(`"error":{"code":-32022,"message":"only the newest version"}`)
	})
}
