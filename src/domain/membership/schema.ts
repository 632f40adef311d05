import { z } from 'zod'
import { DOCUMENT_NAME_MAX, NAME_MAX } from '../../kit/names/rule.js'
import { agentIdSchema, cardBodySchema, lineSchema, sandboxIdSchema, tierSchema } from '../card/schema.js'
import { DocumentAccessSchema } from '../document/access.js'
import { isCanonicalKey } from './signing.js'
import type {
  Certificate,
  Entry,
  EntryBody,
  InviteTerms,
  JoinRequest,
  MeshRecord,
  MeshSettings,
  SignedCard,
  SignedCertificate
} from './types.js'

/** Most newcomers of one invite. */
export const INVITE_MAX_USES = 1000
/** Bytes of the mesh's description in an invite (`additional.data`). */
export const MESH_INFO_MAX_BYTES = 512

const REASON_MAX = 256
const MAX_SNAPSHOT_BLOCKS = 1024
/** Most targets of the allow list that crosses sandboxes. */
export const MAX_ALLOWED_TARGETS = 256

/** A 32-byte key or id as 52 characters of canonical z32. */
export const keySchema = z.custom<string>(isCanonicalKey, 'must be a key of 52 characters of z32')
/**
 * A name as the log takes it: 1..64, no control characters. The rule for new names is `nameFault`, which is no part of
 * this: nodes of different Unicode versions must read one log alike.
 */
export const nameSchema = lineSchema(NAME_MAX)

/** Signatures are checked in full where the key is known; here only their form. */
const signatureSchema = z
  .string()
  .regex(/^[ybndrfg8ejkmcpqxot1uwisza345h769]{103}$/, 'must be a signature of 103 characters of z32')
/** Unix milliseconds. */
const timeSchema = z.int().min(0)

/** An issuer's statement about a node; unknown keys are refused. */
export const certificateSchema: z.ZodType<Certificate> = z.strictObject({
  mesh: keySchema,
  nodeKey: keySchema,
  name: nameSchema,
  maxTier: tierSchema,
  sandboxId: sandboxIdSchema.exactOptional(),
  mayInvite: z.boolean(),
  mayWrite: z.boolean(),
  issuedAt: timeSchema,
  expiresAt: timeSchema.exactOptional(),
  serial: z.int().min(1),
  issuer: keySchema,
  inviteId: keySchema.exactOptional()
})

/** A certificate with its signature; the signature itself is checked elsewhere. */
export const signedCertificateSchema: z.ZodType<SignedCertificate> = z.strictObject({
  body: certificateSchema,
  by: keySchema,
  sig: signatureSchema
})

/** A candidate's request. */
export const joinRequestSchema: z.ZodType<JoinRequest> = z.strictObject({
  nodeKey: keySchema,
  coreKey: keySchema,
  name: nameSchema,
  sig: signatureSchema
})

/** The grant of an invite. */
export const inviteTermsSchema: z.ZodType<InviteTerms> = z.strictObject({
  id: keySchema,
  publicKey: keySchema,
  tier: tierSchema,
  admin: z.boolean(),
  sandboxId: sandboxIdSchema.exactOptional(),
  trust: z.literal('mine').exactOptional(),
  uses: z.int().min(1).max(INVITE_MAX_USES),
  createdAt: timeSchema,
  expiresAt: timeSchema,
  additional: z.strictObject({
    data: z.string().max(Math.ceil((MESH_INFO_MAX_BYTES * 8) / 5)),
    signature: signatureSchema
  })
})

/** The view's record of the mesh. */
export const meshRecordSchema: z.ZodType<MeshRecord> = z.strictObject({
  id: keySchema,
  name: nameSchema,
  owner: keySchema,
  foundedAt: timeSchema
})

const signedCardSchema: z.ZodType<SignedCard> = z.strictObject({
  body: cardBodySchema,
  by: keySchema,
  sig: signatureSchema
})

/** The owner's settings for the mesh. */
export const meshSettingsSchema: z.ZodType<MeshSettings> = z.strictObject({
  tierRules: z
    .array(
      z.strictObject({
        sourceTier: tierSchema,
        allowedTargetTiers: z.array(tierSchema).max(4),
        requiresEscalationJustification: z.boolean()
      })
    )
    .max(4)
    .refine((rules) => new Set(rules.map(({ sourceTier }) => sourceTier)).size === rules.length, 'one rule a tier'),
  sandbox: z.strictObject({
    enforced: z.boolean(),
    // An agent id, or an agent id and a node key.
    crossSandboxAllowList: z.array(lineSchema(128)).max(MAX_ALLOWED_TARGETS)
  })
})

/** Name of a document as the log takes it: one line without control characters; see {@link nameSchema}. */
export const documentNameSchema = lineSchema(DOCUMENT_NAME_MAX)

/** The body of a log entry, by its kind. */
export const entryBodySchema: z.ZodType<EntryBody> = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('founding'),
    mesh: keySchema,
    name: nameSchema,
    certificate: signedCertificateSchema,
    coreKey: keySchema,
    at: timeSchema
  }),
  z.strictObject({ kind: z.literal('invite'), mesh: keySchema, invite: inviteTermsSchema }),
  z.strictObject({ kind: z.literal('invite-revoked'), mesh: keySchema, inviteId: keySchema, at: timeSchema }),
  z.strictObject({
    kind: z.literal('admission'),
    mesh: keySchema,
    certificate: signedCertificateSchema,
    coreKey: keySchema,
    request: joinRequestSchema
  }),
  z.strictObject({ kind: z.literal('certificate'), mesh: keySchema, certificate: signedCertificateSchema }),
  z.strictObject({
    kind: z.literal('revocation'),
    mesh: keySchema,
    nodeKey: keySchema,
    at: timeSchema,
    reason: z.string().max(REASON_MAX)
  }),
  z.strictObject({ kind: z.literal('card'), mesh: keySchema, card: signedCardSchema }),
  z.strictObject({
    kind: z.literal('card-removed'),
    mesh: keySchema,
    agentId: agentIdSchema,
    revision: z.int().min(0)
  }),
  z.strictObject({
    kind: z.literal('settings'),
    mesh: keySchema,
    settings: meshSettingsSchema,
    serial: z.int().min(1),
    at: timeSchema
  }),
  z.strictObject({
    kind: z.literal('trust'),
    mesh: keySchema,
    nodeKey: keySchema,
    trust: z.enum(['mine', 'guest']),
    serial: z.int().min(1),
    at: timeSchema
  }),
  z.strictObject({ kind: z.literal('core'), mesh: keySchema, coreKey: keySchema, serial: z.int().min(1) }),
  z.strictObject({
    kind: z.literal('document'),
    mesh: keySchema,
    name: documentNameSchema,
    access: DocumentAccessSchema.nullable(),
    at: timeSchema
  }),
  z.strictObject({
    kind: z.literal('document-access'),
    mesh: keySchema,
    name: documentNameSchema,
    access: DocumentAccessSchema,
    lengths: z.record(keySchema, z.int().min(0)),
    ends: keySchema.optional()
  }),
  z.strictObject({ kind: z.literal('document-removed'), mesh: keySchema, name: documentNameSchema, at: timeSchema }),
  z.strictObject({ kind: z.literal('document-stream'), mesh: keySchema, name: documentNameSchema, coreKey: keySchema }),
  z.strictObject({
    kind: z.literal('document-snapshot'),
    mesh: keySchema,
    name: documentNameSchema,
    serial: z.int().min(0),
    coreKey: keySchema,
    blocks: z.int().min(1).max(MAX_SNAPSHOT_BLOCKS),
    hash: keySchema,
    lengths: z.record(keySchema, z.int().min(0))
  })
])

/** A signed log entry; the signature itself is checked by the fold. */
export const entrySchema: z.ZodType<Entry> = z.strictObject({
  body: entryBodySchema,
  by: keySchema,
  sig: signatureSchema
})

/** The user data of a pairing request. */
export const joinDataSchema = z.strictObject({ v: z.literal(1), request: joinRequestSchema })

/** The description of the mesh that an invite's key signs. */
export const meshInfoSchema = z.strictObject({ v: z.literal(1), owner: keySchema, name: nameSchema, mesh: keySchema })
