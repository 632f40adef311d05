import { z } from 'zod'
import { tcpAddress } from '../../kit/net/tcp-address.js'
import { listenAddress } from '../public-url.js'
import type { Setting } from '../settings.js'

/** Addresses of one list, at most. */
const MAX_ADDRESSES = 4

/** A text as an address in its one spelling. */
const addressSchema: z.ZodType<string> = z
  .string()
  .refine((text) => tcpAddress(text) !== null)
  .transform((text) => tcpAddress(text) ?? text)

const listen: Setting<string> = {
  schema: z.union([
    z.int().min(0).max(65_535).transform(String),
    z
      .string()
      .max(262)
      .refine((text) => text === 'auto' || text === 'off' || listenAddress(text) !== null)
  ]),
  fallback: 'auto',
  form: 'text',
  unit: null,
  allowed: 'auto, off or [host:]port; auto is a free port of every address, and off in a local network',
  about: 'Where members connect by TCP, which is preferred to UDP.'
}

const addresses: Setting<readonly string[]> = {
  schema: z.array(addressSchema).max(MAX_ADDRESSES),
  fallback: [],
  form: 'list',
  unit: null,
  allowed: `a list of host:port, at most ${MAX_ADDRESSES}`,
  about: 'Where other machines reach it. Default: the addresses of this machine that it listens on.'
}

const lan: Setting<boolean> = {
  schema: z.boolean(),
  fallback: true,
  form: 'boolean',
  unit: null,
  allowed: 'true | false',
  about: 'Find members and admins of the LAN by mDNS (_a2a-node._tcp), also without internet; not in a local network.'
}

/** The section `discovery`. */
export const DISCOVERY = { lan }

/** The section `tcp`. */
export const TCP = { listen, addresses }
