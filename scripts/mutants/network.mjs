// Faults in the reports about an unreachable network, HTTP and the config.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const NETWORK_MUTANTS = [
  {
    name: 'an unreachable network is answered',
    file: 'src/adapters/mesh/network/reachability.ts',
    find: 'if (isAnswered || hasTraffic) this.#answered()',
    put: 'if (isAnswered || hasTraffic || this.#problem === null) this.#answered()',
    test: 'adapters/mesh/network/reachability',
    title: 'a bootstrap list that nobody answers is named after 2 s'
  },
  {
    name: 'any answer counts on a private network',
    file: 'src/adapters/mesh/network/reachability.ts',
    find: "return kind === 'public' && this.#responses > before",
    put: "return kind !== 'local' && this.#responses > before",
    test: 'adapters/mesh/network/reachability',
    title: 'a private network does not count answers of others than its bootstrap nodes'
  },
  {
    name: 'traffic before a question counts as its answer',
    file: 'src/adapters/mesh/network/reachability.ts',
    find: 'this.#responses = dht.stats.requests.responses',
    put: '',
    test: 'adapters/mesh/network/reachability',
    title: 'on the public network an answer of any node counts'
  },
  {
    name: 'known addresses are not dialled',
    file: 'src/adapters/mesh/network/known-addresses.ts',
    find: 'known.length > 0 ? { ...options, relayAddresses: known } : options',
    put: 'known.length > 256 ? { ...options, relayAddresses: known } : options',
    test: 'adapters/mesh/network/known-addresses',
    title: 'a peer is dialled at its known address without any other node of the DHT'
  },
  {
    name: 'remembered addresses have no bound',
    file: 'src/adapters/mesh/network/known-addresses.ts',
    find: 'if (this.#peers.size <= MAX_ADDRESSES) break',
    put: 'if (this.#peers.size > 0) break',
    test: 'adapters/mesh/network/known-addresses',
    title: 'a new address takes the place of the former'
  },
  {
    name: 'a bootstrap node outside a private network is ignored',
    file: 'src/compose/node-record.ts',
    find: "if (serveBootstrap === null || network === 'private'",
    put: "if (serveBootstrap === null || network !== 'local'",
    test: 'compose/node-record',
    title: 'a bootstrap node that nobody would ask is refused'
  },
  {
    name: 'changed settings are not compared with those in force',
    file: 'src/compose/config-reload.ts',
    find: 'changed: this.#differences(next).map(({ path }) => path)',
    put: 'changed: this.#differences(this.#config).map(({ path }) => path)',
    test: 'compose/config-reload',
    title: 'a look names every setting that differs from those in force'
  },
  {
    name: 'a wildcard is shown as loopback',
    file: 'src/adapters/http/listener.ts',
    find: 'this.boundUrl = `http://${bound}:${address.port}`',
    put: "this.boundUrl = `http://${bound.replace('0.0.0.0', '127.0.0.1')}:${address.port}`",
    test: 'e2e/http',
    title: 'beyond this machine it listens only at configured addresses, and reports them'
  },
  {
    name: 'a member that is linked again at the same address is dropped as one linked long ago',
    file: 'src/adapters/mesh/network/known-addresses.ts',
    find: 'this.#peers.delete(peer) this.#peers.set(peer',
    put: 'this.#peers.set(peer',
    test: 'adapters/mesh/network/known-addresses',
    title: 'beyond the bound a member that is linked again at the same address stays'
  }
]
