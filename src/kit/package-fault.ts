/** An uncaught error of a package. */
export interface PackageFault {
  readonly package: string
  readonly error: Error
}

const MISTAKES = [TypeError, SyntaxError, ReferenceError, EvalError, RangeError, URIError]

/** Is it an error that network packages take for a programming error and rethrow uncaught, in a task of its own? */
export function isMistake(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  return MISTAKES.some((kind) => error instanceof kind) || error.name === 'AssertionError'
}
