package script

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// maxScript bounds a script, in bytes.
const maxScript = 16 << 20

// Read reads the script in the file at path. name is what messages call it. What stands wrongly in the file gives the
// error of Parse; a file that cannot be read gives one that says why, in one line.
func Read(name, path string) (*Script, error) {
	source, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("the script %s cannot be read: %w", name, err)
	}
	return Parse(name, source)
}

// readFile reads a file of a size that a script can have. Its errors do not repeat the path.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	var at *os.PathError
	if errors.As(err, &at) {
		return nil, at.Err
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() // it is only read
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, errors.New("it is a folder")
	}
	source, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if errors.As(err, &at) {
		return nil, at.Err
	}
	if err == nil && len(source) > maxScript {
		return nil, errors.New("it is larger than 16 MiB")
	}
	return source, err
}
