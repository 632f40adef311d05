import { pairingContract } from '../../../contracts/pairing.js'
import { pairingWorld } from './pairing-world.js'

pairingContract('Blind pairing', 'short', pairingWorld)
