package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the long help text.
func (*completionCmd) Help() string {
	return `Examples:

    source <(fusec completion bash)
    fusec completion zsh > "${fpath[1]}/_fusec"
    fusec completion fish > ~/.config/fish/completions/fusec.fish`
}

// Run prints the script. It holds the commands and flags of the model kong reads
// arguments by, so that it cannot fall behind them.
func (c *completionCmd) Run(a *app) error {
	write := map[string]func(io.Writer, *kong.Application){
		"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
	}
	write[c.Shell](a.ui.out, a.model)
	return nil
}

// walkCommands visits every command, with the words that lead to it.
func walkCommands(n *kong.Node, path []string, visit func(n *kong.Node, path []string)) {
	visit(n, path)
	for _, child := range n.Children {
		if !child.Hidden {
			walkCommands(child, append(path[:len(path):len(path)], child.Name), visit)
		}
	}
}

// visibleFlags are the flags that may follow a command, those of all commands included.
func visibleFlags(n *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for _, group := range n.AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

// words are what may come next after a command: subcommands, the values of an
// enumerated argument, flags.
func words(n *kong.Node) []string {
	var out []string
	for _, child := range n.Children {
		out = append(out, child.Name)
	}
	for _, p := range n.Positional {
		out = append(out, valuesOf(p)...)
	}
	for _, f := range visibleFlags(n) {
		out = append(out, "--"+f.Name)
	}
	return out
}

// valuesOf lists what a flag or argument may be: its enumeration, or what its tag "complete"
// names.
func valuesOf(v *kong.Value) []string {
	if v.Enum != "" {
		return v.EnumSlice()
	}
	switch v.Tag.Get("complete") {
	case "devices":
		return []string{"auto", "cuda", "cpu"}
	case "figures":
		return strings.Split(deviceNames(), ", ")
	case "archs":
		return knownArchs()
	case "ops":
		return callableNames()
	case "bench-suites":
		return bench.Suites()
	case "bench-ops":
		return benchOps()
	case "dtypes":
		return benchTypes
	}
	return nil
}

func knownArchs() []string {
	var out []string
	for _, d := range ir.Devices() {
		if !slices.Contains(out, d.Arch) {
			out = append(out, d.Arch)
		}
	}
	return out
}

// callableNames are the names that fusec ops describes.
func callableNames() []string {
	library, err := parser.Library()
	if err != nil {
		return nil // which a test of the library reports
	}
	var out []string
	for _, d := range append(parser.Builtins(), library...) {
		out = append(out, d.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func benchOps() []string {
	var out []string
	for _, name := range bench.Suites() {
		programs, err := bench.Suite(name)
		if err != nil {
			return nil
		}
		for _, p := range programs {
			for _, k := range p.Cases {
				out = append(out, k.Graph)
			}
		}
	}
	return out
}

// takesFiles reports whether a command's arguments are files.
func takesFiles(n *kong.Node) bool {
	for _, p := range n.Positional {
		if p.Name == "file" {
			return true
		}
	}
	return false
}

func bashCompletion(w io.Writer, model *kong.Application) {
	fmt.Fprint(w, `_fusec() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" word words files=""
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path $word" in
`)
	walkCommands(model.Node, nil, func(_ *kong.Node, path []string) {
		if len(path) > 0 {
			fmt.Fprintf(w, "        ' %s') path=' %s' ;;\n", strings.Join(path, " "), strings.Join(path, " "))
		}
	})
	fmt.Fprint(w, `        esac
    done
    if [[ $previous == --graph ]]; then # those of the program that the line names
        words=""
        for word in "${COMP_WORDS[@]}"; do
            [[ $word == *.fuse && -f $word ]] &&
                words+=" $(sed -n -E 's/^(.*[ )])?graph +([A-Za-z_][A-Za-z0-9_]*).*/\2/p' "$word")"
        done
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case "$path $previous" in
`)
	walkCommands(model.Node, nil, func(n *kong.Node, path []string) {
		before := "*' --" // the flags of all commands follow any
		if len(path) > 0 {
			before = "' " + strings.Join(path, " ") + " --"
		}
		for _, f := range n.Flags {
			switch values := valuesOf(f.Value); {
			case values != nil:
				fmt.Fprintf(w, "    %s%s') COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;\n",
					before, f.Name, strings.Join(values, " "))
			case f.Name != "graph" && !f.IsBool():
				fmt.Fprintf(w, "    %s%s') COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", before, f.Name)
			}
		}
	})
	fmt.Fprint(w, "    esac\n    case $path in\n")
	walkCommands(model.Node, nil, func(n *kong.Node, path []string) {
		files := ""
		if takesFiles(n) {
			files = " files=yes"
		}
		prefix := ""
		if len(path) > 0 {
			prefix = " "
		}
		fmt.Fprintf(w, "    '%s%s') words='%s'%s ;;\n",
			prefix, strings.Join(path, " "), strings.Join(words(n), " "), files)
	})
	fmt.Fprint(w, `    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ $files && $current != -* ]]; then
        COMPREPLY+=($(compgen -f -X '!*.fuse' -- "$current") $(compgen -d -S / -- "$current"))
    fi
}
complete -o nospace -o bashdefault -F _fusec fusec
`)
}

func zshCompletion(w io.Writer, model *kong.Application) {
	fmt.Fprint(w, "#compdef fusec\n")
	walkCommands(model.Node, nil, func(n *kong.Node, path []string) {
		fmt.Fprintf(w, "\n%s() {\n", zshFunction(path))
		if len(n.Children) == 0 {
			fmt.Fprintf(w, "    _arguments%s%s\n}\n", zshFlags(n), zshArguments(n))
			return
		}
		fmt.Fprintf(w, "    local line state\n    _arguments -C%s", zshFlags(n))
		fmt.Fprint(w, " '1: :->command' '*::argument:->argument'\n")
		fmt.Fprint(w, "    case $state in\n    command) local -a commands=(\n")
		for _, child := range n.Children {
			fmt.Fprintf(w, "        '%s:%s'\n", child.Name, zshQuote(child.Help))
		}
		fmt.Fprint(w, "    ); _describe command commands ;;\n    argument) case $line[1] in\n")
		for _, child := range n.Children {
			words := append(path[:len(path):len(path)], child.Name)
			fmt.Fprintf(w, "        %s) %s ;;\n", child.Name, zshFunction(words))
		}
		fmt.Fprint(w, "        esac ;;\n    esac\n}\n")
	})
	fmt.Fprint(w, "\n_fusec \"$@\"\n")
}

func zshFunction(path []string) string { return strings.Join(append([]string{"_fusec"}, path...), "_") }

func zshFlags(n *kong.Node) string {
	var b strings.Builder
	for _, f := range visibleFlags(n) {
		value := ""
		switch {
		case valuesOf(f.Value) != nil:
			value = fmt.Sprintf(":%s:(%s)", f.Name, strings.Join(valuesOf(f.Value), " "))
		case !f.IsBool():
			value = ":" + f.Name + ":_files"
		}
		fmt.Fprintf(&b, " \\\n        '--%s[%s]%s'", f.Name, zshQuote(f.Help), value)
	}
	return b.String()
}

func zshArguments(n *kong.Node) string {
	for _, p := range n.Positional {
		if values := valuesOf(p); values != nil {
			return fmt.Sprintf(" \\\n        '1:%s:(%s)'", p.Name, strings.Join(values, " "))
		}
	}
	if takesFiles(n) {
		return ` \` + "\n        '*:file:_files -g \"*.fuse\"'"
	}
	return ""
}

// zshQuote makes text safe inside single quotes and _arguments' brackets.
func zshQuote(s string) string {
	return strings.NewReplacer("'", "’", "[", "(", "]", ")", ":", " -").Replace(s)
}

func fishCompletion(w io.Writer, model *kong.Application) {
	fmt.Fprintln(w, "complete -c fusec -f")
	walkCommands(model.Node, nil, func(n *kong.Node, path []string) {
		condition := fishCondition(n, path)
		for _, child := range n.Children {
			fmt.Fprintf(w, "complete -c fusec -n '%s' -a %s -d %s\n", condition, child.Name, fishQuote(child.Help))
		}
		for _, p := range n.Positional {
			for _, value := range valuesOf(p) {
				fmt.Fprintf(w, "complete -c fusec -n '%s' -a %s\n", condition, value)
			}
		}
		if takesFiles(n) {
			fmt.Fprintf(w, "complete -c fusec -n '%s' -F\n", condition)
		}
		for _, f := range n.Flags {
			fmt.Fprintf(w, "complete -c fusec -n '%s' -l %s%s -d %s\n",
				condition, f.Name, fishValues(f), fishQuote(f.Help))
		}
	})
}

func fishCondition(n *kong.Node, path []string) string {
	if len(path) == 0 {
		return "__fish_use_subcommand"
	}
	condition := "__fish_seen_subcommand_from " + path[len(path)-1]
	if len(path) > 1 {
		condition = "__fish_seen_subcommand_from " + path[0] + "; and " + condition
	}
	for _, child := range n.Children {
		condition += "; and not __fish_seen_subcommand_from " + child.Name
	}
	return condition
}

func fishValues(f *kong.Flag) string {
	switch {
	case valuesOf(f.Value) != nil:
		return " -xa '" + strings.Join(valuesOf(f.Value), " ") + "'"
	case f.IsBool():
		return ""
	}
	return " -r"
}

func fishQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "’") + "'" }
