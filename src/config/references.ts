import os from 'node:os'
import path from 'node:path'

/** Result of {@link expandReferences}. */
export type ExpandedText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: string }

/** A piece of a value: text as it is, a variable of the environment, or a reference that cannot be resolved. */
type ReferencePart =
  | { readonly text: string }
  | { readonly variable: string; readonly fallback: string | null }
  | { readonly fault: string; readonly text: string }

/** `$${` is a literal `${`. */
const TOKEN = /\$\$\{|\$\{([^}]*)(\}?)/g
const VARIABLE = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^]*))?$/
/** Predefined variables of editors that mean an open folder or file. */
const EDITOR =
  /^(?:(?:input|command|config):|(?:workspaceFolder|workspaceRoot|fileWorkspaceFolder|relativeFile|fileDirname)\w*(?::|$))/
const FORMS = 'write ${NAME} or ${NAME:-default} for a variable of the node, and $${ for a literal ${'

function pieceOf(inner: string, isClosed: boolean): ReferencePart {
  if (!isClosed) return { fault: `has a \${ without its }: ${FORMS}`, text: inner }
  if (inner === 'userHome') return { text: os.homedir() }
  if (inner === 'pathSeparator' || inner === '/') return { text: path.sep }
  if (EDITOR.test(inner))
    return { fault: `has a reference that only an editor resolves (\${${nameIn(inner)}}): ${FORMS}`, text: inner }
  const [, variable, fallback = null] = VARIABLE.exec(inner) ?? []
  if (variable === undefined || fallback?.includes('${') === true)
    return { fault: `has a \${...} of an unknown form: ${FORMS}`, text: inner }
  return { variable, fallback }
}

/** The part of a reference that holds no secret: not its default. */
function nameIn(inner: string): string {
  return /^[\w:.-]{0,64}/.exec(inner)?.[0] ?? ''
}

function piecesOf(value: string): ReferencePart[] {
  const pieces: ReferencePart[] = []
  let end = 0
  for (const match of value.matchAll(TOKEN)) {
    pieces.push({ text: value.slice(end, match.index) })
    pieces.push(match[1] === undefined ? { text: '${' } : pieceOf(match[1], match[2] === '}'))
    end = match.index + match[0].length
  }
  return [...pieces, { text: value.slice(end) }]
}

/**
 * The fault of a value whose `${...}` no environment can resolve, as the end of a sentence; null for none. Holds no
 * part of a default.
 */
export function referenceFault(value: string): string | null {
  for (const piece of piecesOf(value)) if ('fault' in piece) return piece.fault
  return null
}

/**
 * Replaces each `${NAME}`, `${env:NAME}` and `${NAME:-default}` by the variable, `${userHome}` by the home directory,
 * and `$${` by `${`. The default takes the place of an empty variable too. Fails for any other `${`, and for a variable
 * that is not set.
 */
export function expandReferences(value: string, env: Readonly<Record<string, string | undefined>>): ExpandedText {
  let text = ''
  for (const piece of piecesOf(value)) {
    if ('fault' in piece) return { ok: false, reason: piece.fault }
    if ('text' in piece) text += piece.text
    else {
      const found = piece.fallback === null ? env[piece.variable] : env[piece.variable] || piece.fallback
      if (found === undefined)
        return { ok: false, reason: `the variable ${piece.variable} is not set in the environment of this node` }
      text += found
    }
  }
  return { ok: true, text }
}

/** A text in which nothing is a reference, e.g. a path. */
export function literalText(text: string): string {
  return text.replaceAll('${', () => '$${')
}

/** Names of the variables that a value needs: those of its `${...}` without a default. */
export function neededVariables(value: string): string[] {
  return piecesOf(value).flatMap((piece) => ('variable' in piece && piece.fallback === null ? [piece.variable] : []))
}

/**
 * Rewrites references: `change` gets the text between `${` and `}`, and returns the text for the whole, or null to keep
 * it.
 */
export function rewriteReferences(value: string, change: (inner: string) => string | null): string {
  return value.replace(TOKEN, (whole, inner: string | undefined) =>
    inner === undefined ? whole : (change(inner) ?? whole)
  )
}
