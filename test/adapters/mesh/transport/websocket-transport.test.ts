import { streamTransportContract } from '../../../contracts/stream-transport.js'
import { webSocketWorld } from './websocket-world.js'

streamTransportContract('WebSocket transport', async (t) => webSocketWorld(t), { findsPeers: false })
