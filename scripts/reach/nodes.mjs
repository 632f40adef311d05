import path from 'node:path'
import { startNode } from '../bench/nodes.mjs'

/** Starts a node of a host on an internet of the lab. */
export function startOn(lab, { net, host, name, join, args = [], env = {} }) {
  return startNode(lab, {
    home: path.join(lab.dir(), 'h'),
    name,
    env: {
      ...process.env,
      NO_COLOR: '1',
      A2A_NODE_NETWORK_KIND: 'private',
      A2A_NODE_NETWORK_BEHIND_NAT: 'true',
      A2A_NODE_NETWORK_BOOTSTRAP: net.bootstrap.join(','),
      ...env
    },
    through: host.through,
    join,
    args
  })
}
