/** Where a node accepts TCP. */
export interface TcpAddress {
  /** A name or an address; IPv6 without brackets. */
  readonly host: string
  /** 1 to 65535. */
  readonly port: number
}

/** Digits and dots alone are an IPv4 address, or a mistake. */
const NAME = /^(?:(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)|.*[^\d.].*)$/
const IPV6 = /:.*:/

/** The parts of `host:port`, IPv6 in brackets; null for any other text. */
export function parseTcpAddress(text: string): TcpAddress | null {
  const match = /^(?:([A-Za-z0-9._-]{1,253})|\[([0-9A-Fa-f:.]{2,45})\]):(\d{1,5})$/.exec(text.trim())
  const [, name, ipv6, digits] = match ?? []
  const host = (name ?? ipv6)?.toLowerCase()
  const port = Number(digits)
  if (host === undefined || !(ipv6 === undefined ? NAME : IPV6).test(host)) return null
  return port < 1 || port > 65_535 ? null : { host, port }
}

/** The text of an address: `host:port`, IPv6 in brackets. */
export function tcpAddressText({ host, port }: TcpAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** An address in its one spelling; null for a text that is none. */
export function tcpAddress(text: string): string | null {
  const parsed = parseTcpAddress(text)
  return parsed === null ? null : tcpAddressText(parsed)
}
