import { Argument, type Command } from 'commander';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';

/** One command of the tree: what can follow it. */
interface Node {
  /** `writ lease acquire`. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly help: string }[];
  readonly options: readonly { readonly name: string; readonly help: string }[];
}

export function registerCompletion(program: Command, cli: Cli): void {
  const completion = program
    .command('completion')
    .description('print a completion script, made from the commands of this version')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\n  bash: source <(writ completion bash)\n  zsh:  source <(writ completion zsh)\n  fish: writ completion fish | source',
    );
  action(completion, cli, async ({ out, args: [shell = ''] }) => {
    const nodes = tree(program, program.name());
    out.raw((shell === 'bash' ? bash : shell === 'zsh' ? zsh : fish)(nodes));
    return EXIT.ok;
  });
}

/** Every command with its own options and those of the program, which are taken anywhere. */
function tree(command: Command, path: string, inherited: Node['options'] = []): Node[] {
  const help = command.createHelp();
  const own = help
    .visibleOptions(command)
    .flatMap((option) => (option.long == null ? [] : [{ name: option.long, help: option.description }]));
  const options = [...own, ...inherited.filter(({ name }) => own.every((one) => one.name !== name))];
  const commands = help
    .visibleCommands(command)
    .map((one) => ({ name: one.name(), help: one.summary() || one.description() }));
  const taken =
    command.parent === null ? own.filter(({ name }) => name !== '--version' && name !== '--help') : inherited;
  const below = command.commands.flatMap((one) => tree(one, `${path} ${one.name()}`, taken));
  return [{ path, commands, options }, ...below];
}

const names = (list: Node['commands']): string => list.map(({ name }) => name).join(' ');

function bash(nodes: readonly Node[]): string {
  return `# bash completion for writ
_writ() {
  local cur path word i words
  cur="\${COMP_WORDS[COMP_CWORD]}"
  path="writ"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    # After "writ exec … --" comes somebody else's command.
    if [[ "$word" == "--" ]]; then
      COMPREPLY=($(compgen -c -f -- "$cur"))
      return
    fi
    case "$path $word" in
      ${paths(nodes)}) path="$path $word" ;;
    esac
  done
  words=""
  case "$path" in
${nodes.map((node) => `    ${quote(node.path)}) words=${quote(`${names(node.commands)} ${names(node.options)}`.trim())} ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _writ writ
`;
}

function zsh(nodes: readonly Node[]): string {
  const described = (list: Node['commands']) =>
    list.map(({ name, help }) => quote(`${name}:${help.replaceAll(':', '\\:')}`)).join(' ');
  return `#compdef writ
# zsh completion for writ
_writ() {
  local path_so_far word i
  local -a candidates
  path_so_far="writ"
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    if [[ "$word" == "--" ]]; then
      shift i words
      (( CURRENT -= i ))
      _normal
      return
    fi
    case "$path_so_far $word" in
      (${paths(nodes)}) path_so_far="$path_so_far $word" ;;
    esac
  done
  case "$path_so_far" in
${nodes.map((node) => `    (${quote(node.path)}) candidates=(${described(node.commands)} ${described(node.options)}) ;;`).join('\n')}
  esac
  _describe 'writ' candidates || _files
}
if [[ -n "\${functions[compdef]}" ]]; then compdef _writ writ; fi
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const here = `-n ${quote(`test (__writ_path) = ${quote(node.path)}`)}`;
    return [
      ...node.commands.map(({ name, help }) => `complete -c writ -f ${here} -a ${name} -d ${quote(help)}`),
      ...node.options.map(({ name, help }) => `complete -c writ ${here} -l ${name.slice(2)} -d ${quote(help)}`),
    ];
  });
  return `# fish completion for writ
function __writ_path
  set -l path writ
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
      case ${nodes
        .slice(1)
        .map((node) => quote(node.path))
        .join(' ')}
        set path "$path $word"
    end
  end
  echo $path
end
${lines.join('\n')}
`;
}

function paths(nodes: readonly Node[]): string {
  return nodes
    .slice(1)
    .map((node) => quote(node.path))
    .join(' | ');
}

/** For all three shells, as long as the text has no quote of its own. */
function quote(text: string): string {
  return text.includes("'") ? `"${text.replaceAll(/["$`\\]/g, '\\$&')}"` : `'${text}'`;
}
