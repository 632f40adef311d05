import { type AddressPolicy, allowedHost } from '../adapters/a2a/net/address-guard.js'
import type { RemoteSecret } from '../adapters/a2a/remote/remote-connect.js'
import type { A2ASecretSetting } from '../config/a2a-agents.js'
import type { Config } from '../config/settings.js'
import { type EnvValues, resolvedHeader } from '../config/env-values.js'

/** The hosts that A2A calls and push notifications may reach beside public ones: `a2a.allowPrivate`. */
export function addressPolicy({ a2a }: Pick<Config, 'a2a'>): AddressPolicy {
  return { allowed: a2a.allowPrivate.flatMap((text) => allowedHost(text) ?? []) }
}

/** The secret of an A2A agent of the config. */
export function secretOf(
  name: string,
  { header, value, isBearer, origins }: A2ASecretSetting,
  env: EnvValues
): RemoteSecret {
  const headers = (): Record<string, string> => {
    const secret = resolvedHeader(value, env, `a2a.agents.${name}.auth`)
    return { [header]: isBearer ? `Bearer ${secret}` : secret }
  }
  return { headers, origins }
}
