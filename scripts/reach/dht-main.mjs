// Nodes of a DHT, one on each address: `node dht-main.mjs host:port ...`. Prints a line when all are ready.
import HyperDHT from 'hyperdht'

const addresses = process.argv.slice(2).map((text) => {
  const [host, port] = text.split(':')
  return { host, port: Number(port) }
})
const [first, ...others] = addresses
const nodes = [HyperDHT.bootstrapper(first.port, first.host, { host: first.host })]
await nodes[0].fullyBootstrapped()
for (const { host, port } of others) {
  const node = new HyperDHT({ bootstrap: [first], host, port, anyPort: false, firewalled: false, ephemeral: false })
  await node.fullyBootstrapped()
  nodes.push(node)
}
process.once('SIGTERM', () => process.exit(0))
console.log('ready')
