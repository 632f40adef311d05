import { shown } from '../text.js'

/** Longest name of an organization, in UTF-16 units. */
export const ORGANIZATION_MAX = 128
/** Longest URL of a provider, in characters. */
export const PROVIDER_URL_MAX = 512

/** The organization that offers an agent (A2A 1.0, section 4.4.2). */
export interface AgentProvider {
  /** 1 to 128 printable characters on one line. */
  readonly organization: string
  /** Absolute http or https URL of its website; at most 512 ASCII characters. */
  readonly url: string
}

/** Form of {@link AgentProvider}, for people. */
export const PROVIDER_FORM = 'organization and url, both required'

const WEB_URL =
  /^https?:\/\/(?:\[[0-9a-f:.]{2,45}\]|(?=[^/?#:]*[a-z0-9])[a-z0-9._-]{1,253})(?::(?<port>\d{1,5}))?(?:[/?#](?:(?!\\)[\x21-\x7e])*)?$/i

/** Why a text is no name of an organization, as `must be ...`; null for a valid one. */
export function organizationFault(text: string): string | null {
  const isLine = shown(text, ORGANIZATION_MAX) === text && /[\p{L}\p{N}]/u.test(text)
  return isLine ? null : `must be 1 to ${ORGANIZATION_MAX} printable characters on one line, with a letter or a digit`
}

/** Why a text is no URL of a provider, as `must be ...`; null for a valid one. */
export function providerUrlFault(text: string): string | null {
  const match = text.length > PROVIDER_URL_MAX ? null : WEB_URL.exec(text)
  const isUrl = match !== null && Number(match.groups?.['port'] ?? 1) <= 65_535
  return isUrl
    ? null
    : `must be an absolute http or https URL without user and password, at most ${PROVIDER_URL_MAX} ASCII characters`
}
