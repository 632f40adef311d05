/** One fenced block of a Markdown text. */
export interface Fence {
  /** The word behind the backticks; '' without one. */
  readonly language: string
  readonly text: string
}

/** The fenced blocks of a text, in order. */
export function fencesOf(markdown: string): Fence[] {
  return [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text
  }))
}

/** A text without its fenced blocks. */
export function withoutFences(markdown: string): string {
  return markdown.replace(/^```\w*\n[\s\S]*?^```$/gm, '')
}

/**
 * The simple commands of a shell text, each as its words: quotes are taken off, lines that end in `\` are joined,
 * comments dropped; `&&`, `||`, `;`, `|` and `&` end a command. No expansion, no redirection.
 */
export function commandsOf(shell: string): string[][] {
  const commands: string[][] = [[]]
  const word = /#[^\n]*|\n|&&|\|\||[;|&]|(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\;|&])+/g
  for (const [token] of shell.replaceAll('\\\n', ' ').matchAll(word)) {
    if (token.startsWith('#')) continue
    if (/^(\n|&&|\|\||[;|&])$/.test(token)) commands.push([])
    else commands.at(-1)?.push(unquoted(token))
  }
  return commands.filter((words) => words.length > 0)
}

function unquoted(token: string): string {
  return token.replaceAll(
    /'([^']*)'|"([^"]*)"|\\(.)/g,
    (_, single?: string, double?: string, escaped?: string) => single ?? double ?? escaped ?? ''
  )
}
