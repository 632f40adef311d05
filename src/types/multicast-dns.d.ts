declare module 'multicast-dns' {
  interface DnsRecord {
    readonly name: string
    readonly type: string
    readonly ttl?: number
    readonly data?: unknown
  }

  interface DnsPacket {
    readonly questions?: readonly { readonly name: string; readonly type: string }[]
    readonly answers?: readonly DnsRecord[]
    readonly additionals?: readonly DnsRecord[]
  }

  interface MulticastDns {
    on(event: 'query' | 'response', listener: (packet: DnsPacket, from: { readonly address: string }) => void): this
    on(event: 'error' | 'warning', listener: (error: Error) => void): this
    query(questions: readonly { readonly name: string; readonly type: string }[]): void
    respond(answers: readonly DnsRecord[]): void
    destroy(done?: () => void): void
  }

  interface MulticastDnsOptions {
    /** Address of the interface. */
    readonly interface?: string
    readonly bind?: string
  }

  export default function multicastDns(options?: MulticastDnsOptions): MulticastDns
}
