/** An unfinished argument of a prompt or of a URI pattern. */
export interface Completing {
  readonly argument: string
  /** The text so far. */
  readonly value: string
  /** The other arguments, so far as they are given. */
  readonly given: Readonly<Record<string, string>>
}

/**
 * All values that an argument may have, in the order to show; undefined when there is no such prompt or pattern here,
 * or nothing known.
 */
export type Complete = (name: string, completing: Completing) => Promise<readonly string[] | undefined>

/** Several sources' as one: the first that knows the name. undefined when none completes anything. */
export function joinComplete(sources: readonly { readonly complete?: Complete }[]): { readonly complete?: Complete } {
  const able = sources.filter((one): one is { readonly complete: Complete } => one.complete !== undefined)
  if (able.length === 0) return {}
  return {
    complete: async (name, completing) => {
      for (const source of able) {
        const values = await source.complete(name, completing)
        if (values !== undefined) return values
      }
      return undefined
    }
  }
}
