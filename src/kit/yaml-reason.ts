/** Meaning of the error codes of the `yaml` package for the author of the file. */
const REASONS: Readonly<Record<string, string>> = {
  BAD_ALIAS: 'an alias or anchor has no valid name',
  BAD_DIRECTIVE: 'a line that begins with % is no YAML directive',
  BAD_DQ_ESCAPE: 'a text in double quotes has an unknown escape; write \\\\ for a backslash',
  BAD_INDENT: 'the indentation does not fit the lines above, or a bracket or brace above is not closed',
  BAD_SCALAR_START: 'a text begins with a character that needs quotes around the text',
  BLOCK_AS_IMPLICIT_KEY: 'a value stands where a key should, or the line is not indented like those above',
  BLOCK_IN_FLOW: 'a line with a dash or a key stands within [ ] or { }; is a bracket not closed?',
  DUPLICATE_KEY: 'the key stands there twice',
  KEY_OVER_1024_CHARS: 'a key has more than 1,024 characters',
  MISSING_CHAR: 'something is not closed or not parted here: a bracket, a brace, a quote or a comma is missing',
  MULTILINE_IMPLICIT_KEY: 'a ":" is missing behind a key, or the line is not indented like those above',
  MULTIPLE_DOCS: 'a line of three dashes begins a second document; one is allowed',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'a tab stands where the line is indented; use spaces',
  TAG_RESOLVE_FAILED: 'a tag (!name) is not known here',
  UNEXPECTED_TOKEN: 'something stands here that does not belong here'
}

/** The fault for the author of a file, by the code of an error of the `yaml` package. */
export function yamlReason(code: string): string {
  return Object.hasOwn(REASONS, code) ? (REASONS[code] ?? '') : 'the text is not valid YAML'
}

/**
 * The alias without an anchor that an error of the `yaml` package names, as written, or null. A text that begins with
 * `*` reads as one.
 */
export function unresolvedAlias(message: string): string | null {
  return /^Unresolved alias .*: (\S+)$/.exec(message)?.[1] ?? null
}
