import { atTenant, type Caller, type Operation, type OperationInput } from './operations.js'
import { withFieldNames } from './proto-names.js'
import { activatedExtensions, checkRequired, type OfferedExtension, type ServiceSource } from './service-params.js'

/** An operation to run, with its request. */
export interface Performed {
  readonly operation: Operation
  /** As the client sent them. */
  readonly params: unknown
  readonly source: ServiceSource
  /** The extensions on the card of an agent or of the node. */
  readonly extensions: (agent: string | null) => readonly OfferedExtension[]
  /** Called with the activated extensions, and the header that names them in the answer. */
  readonly onActivated: (header: string, uris: string) => void
}

/**
 * Reads both forms of field names, resolves the tenant, checks the extensions that its agent requires, then runs the
 * operation.
 * @throws A2AFault, NodeError, synchronously or by rejection
 */
export function perform(
  { operation, params: sent, source, extensions, onActivated }: Performed,
  given: Caller
): Promise<OperationInput> {
  const params = withFieldNames(sent)
  const caller = atTenant(given, params)
  const offered = extensions(caller.agent)
  const activated = activatedExtensions(source, offered)
  checkRequired(offered, activated?.uris ?? [])
  if (activated !== null && activated.uris.length > 0) onActivated(activated.header, activated.uris.join(', '))
  return operation(params, caller)
}
