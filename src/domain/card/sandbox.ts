/** Why a node that is certified for one sandbox does not offer an agent that asks for another; null: it does. */
export function sandboxFault(asked: string | null, certified: string | null): string | null {
  if (asked === null || certified === null || asked === certified) return null
  return `it asks for the sandbox ${asked}, but this node is certified for ${certified} alone: name that one or none, or let a node in ${asked} serve it`
}
