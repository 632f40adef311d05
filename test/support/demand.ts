/** Throws, naming it, when what must hold does not: for properties. */
export function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`broken: ${what}`)
}
