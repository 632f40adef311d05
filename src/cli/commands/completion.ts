import { NodeError } from '../../kit/errors.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { completionValues, valueKind } from '../completion/values.js'
import { COMMANDS, type CommandRow, GLOBAL_OPTIONS, type OptionSpec } from '../terminal/table.js'

/** One position on a command line: the words before, and the possible next ones. */
interface CompletionTarget {
  /** e.g. `swarm run`; '' is the beginning. */
  readonly path: string
  readonly subs: readonly CommandRow[]
  readonly options: readonly OptionSpec[]
  /** Kind of its first argument, see `completion values`; null for none. */
  readonly values: string | null
}

const SCRIPTS: Readonly<Record<string, (places: readonly CompletionTarget[]) => string[]>> = { bash, zsh, fish }

/** `completion <shell>`: a script made of the command table; `completion values <kind>`: values of the running node. */
export const completion: Action = async ({ output, api }, [shell = '', kind = '']) => {
  if (shell === 'values') {
    const values = await completionValues(kind, api)
    if (output.json) output.object('completion-values@1', { kind, values })
    else for (const value of values) output.print(value)
    return EXIT.ok
  }
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script === undefined)
    throw new NodeError('USAGE', `no completion for ${JSON.stringify(shell)}: bash, zsh or fish`, {
      next: ['a2a-node completion bash']
    })
  const text = script(placesOf({ path: '', subs: COMMANDS })).join('\n')
  if (output.json) output.object('completion@1', { shell, script: text })
  else output.print(text)
  return EXIT.ok
}

/** A row of the command table, with its path. */
interface PlacedRow extends Pick<CommandRow, 'args' | 'options'> {
  readonly path: string
  readonly subs: readonly CommandRow[]
}

function placesOf({ path, subs, args, options = [] }: PlacedRow): CompletionTarget[] {
  const below = subs.flatMap((sub) =>
    placesOf({ ...sub, path: path === '' ? sub.name : `${path} ${sub.name}`, subs: sub.sub ?? [] })
  )
  const shown = [...options.filter((one) => one.hidden !== true), ...GLOBAL_OPTIONS]
  return [{ path, subs, options: shown, values: valueKind(path, args) }, ...below]
}

function names(option: OptionSpec): string[] {
  return option.flags.split(/[ ,|]+/).filter((part) => part.startsWith('-'))
}

function takesValue(option: OptionSpec): boolean {
  return option.flags.includes('<')
}

/** The function of bash that asks the running node for values of a kind. */
const BASH_VALUES: readonly string[] = [
  '# bash completion for a2a-node',
  '_a2a_node_values() {',
  '  local i home=()',
  '  [[ "$cur" == -* ]] && return',
  '  for ((i = 1; i < COMP_CWORD; i++)); do',
  '    [[ "${COMP_WORDS[i]}" == --home ]] && home=(--home "${COMP_WORDS[i+1]}")',
  '  done',
  '  "${COMP_WORDS[0]}" completion values "$1" ${home[@]+"${home[@]}"} 2>/dev/null',
  '}'
]

/** Options with listed values, and those with values of the running node, by their flags. */
function listedValues(all: readonly OptionSpec[]) {
  const choices = new Map(
    all.filter((one) => one.choices !== undefined).map((one) => [names(one).join('|'), one.choices?.join(' ') ?? ''])
  )
  const kinds = new Map(
    all.filter(({ values }) => values !== undefined).map((one) => [names(one).join('|'), one.values])
  )
  return { choices, kinds }
}

function bash(places: readonly CompletionTarget[]): string[] {
  const words = (place: CompletionTarget): string =>
    [...place.subs.map((one) => one.name), ...place.options.flatMap(names)].join(' ')
  const all = places.flatMap((place) => place.options)
  const { choices, kinds } = listedValues(all)
  const isFree = (one: OptionSpec): boolean => takesValue(one) && one.choices === undefined && one.values === undefined
  const valued = [...new Set(all.filter(isFree).flatMap(names))]
  const valuesOf = ({ values }: CompletionTarget): string => (values === null ? '' : ` $(_a2a_node_values ${values})`)
  return [
    ...BASH_VALUES,
    '_a2a_node() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path="" word i',
    '  COMPREPLY=()',
    '  case "$prev" in',
    ...[...choices].map(([flags, list]) => `    ${flags}) COMPREPLY=($(compgen -W "${list}" -- "$cur")); return ;;`),
    ...[...kinds].map(
      ([flags, kind]) => `    ${flags}) COMPREPLY=($(compgen -W "$(_a2a_node_values ${kind})" -- "$cur")); return ;;`
    ),
    `    ${valued.join('|')}) COMPREPLY=($(compgen -f -- "$cur")); return ;;`,
    '  esac',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    word="${COMP_WORDS[i]}"',
    '    case "${path:+$path }$word" in',
    `      ${places
      .filter((place) => place.path !== '')
      .map((place) => `"${place.path}"`)
      .join('|')}) path="\${path:+$path }$word" ;;`,
    '    esac',
    '  done',
    '  case "$path" in',
    ...places.map(
      (place) => `    "${place.path}") COMPREPLY=($(compgen -W "${words(place)}${valuesOf(place)}" -- "$cur")) ;;`
    ),
    '  esac',
    '  [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$cur"))',
    '}',
    'complete -F _a2a_node a2a-node'
  ]
}

function zsh(places: readonly CompletionTarget[]): string[] {
  const escape = (text: string): string =>
    text.replaceAll("'", "'\\''").replaceAll('[', '\\[').replaceAll(']', '\\]').replaceAll(':', '\\:')
  const option = (one: OptionSpec): string[] => {
    const files = one.values === undefined ? '_files' : ` _a2a_node_values ${one.values}`
    const value = takesValue(one) ? `:value:${one.choices === undefined ? files : `(${one.choices.join(' ')})`}` : ''
    return names(one).map((name) => `'${name}[${escape(one.about)}]${value}'`)
  }
  const cases = places.map((place) => {
    const subs = place.subs.map((sub) => `'${sub.name}:${escape(sub.about)}'`).join(' ')
    const files = place.values === null ? '_files' : `_a2a_node_values ${place.values}`
    const describe = subs === '' ? files : `{ local -a subs; subs=(${subs}); _describe command subs }`
    return `    '${place.path}') [[ $words[CURRENT] == -* ]] && _arguments ${place.options.flatMap(option).join(' ')} || ${describe} ;;`
  })
  const paths = places.filter((place) => place.path !== '').map((place) => `'${place.path}'`)
  return [
    '#compdef a2a-node',
    '_a2a_node_values() {',
    '  local -a home; local at=${words[(i)--home]}',
    '  (( at < CURRENT )) && home=(--home $words[at+1])',
    '  compadd -- ${(f)"$($words[1] completion values $1 $home 2>/dev/null)"}',
    '}',
    '_a2a_node() {',
    "  local place='' word",
    '  for word in ${words[2,CURRENT-1]}; do',
    '    case "${place:+$place }$word" in',
    `      ${paths.join('|')}) place="\${place:+$place }$word" ;;`,
    '    esac',
    '  done',
    '  case $place in',
    ...cases,
    '  esac',
    '}',
    'compdef _a2a_node a2a-node'
  ]
}

function fish(places: readonly CompletionTarget[]): string[] {
  const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = places.flatMap((place) => {
    const condition = `-n ${quote(`__a2a_node_at ${place.path}`.trim())}`
    const subs = place.subs.map((sub) => `complete -c a2a-node -f ${condition} -a ${sub.name} -d ${quote(sub.about)}`)
    const options = place.options.map((one) => {
      const flags = names(one).map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
      const list = one.choices?.join(' ') ?? (one.values === undefined ? null : `(__a2a_node_values ${one.values})`)
      const value = list !== null ? ` -x -a ${quote(list)}` : takesValue(one) ? ' -r' : ''
      return `complete -c a2a-node ${condition} ${flags.join(' ')}${value} -d ${quote(one.about)}`
    })
    const values =
      place.values === null ? [] : [`complete -c a2a-node -f ${condition} -a '(__a2a_node_values ${place.values})'`]
    return [...subs, ...options, ...values]
  })
  const paths = places.filter((place) => place.path !== '').map((place) => quote(place.path))
  return [
    '# fish completion for a2a-node',
    'function __a2a_node_at',
    '  set -l place',
    '  for word in (commandline -opc)[2..-1]',
    `    if contains -- (string join ' ' $place $word) ${paths.join(' ')}`,
    '      set -a place $word',
    '    end',
    '  end',
    '  test "$place" = "$argv"',
    'end',
    'function __a2a_node_values',
    '  set -l words (commandline -opc)',
    '  set -l at (contains -i -- --home $words)',
    '  set -l home',
    '  test -n "$at"; and set home --home $words[(math $at + 1)]',
    '  $words[1] completion values $argv[1] $home 2>/dev/null',
    'end',
    ...lines
  ]
}
