import type { TierText } from '../domain/routing/tier.js'
import type { NodeRef, Problem } from './node-api.js'

/** A JSON value as documents hold it. */
export type DocumentValue = unknown

/** The shared types of a document that can be read and edited by name. */
export type DocumentType = 'text' | 'map' | 'list'

/**
 * Which part of a document: a shared type by its name in the Y.Doc. An existing editor names its own, e.g.
 * `codemirror`.
 */
export interface DocumentRoot {
  readonly type: DocumentType
  /** 1..256 characters. Default: the same word as `type`. One name has one type for good. */
  readonly root?: string
}

/**
 * One change. Text counts UTF-16 units, as Yjs does. `text`, `map` and `list` set the value by the smallest change:
 * concurrent edits of others stay.
 */
export type DocumentEdit =
  | { readonly type: 'text'; readonly root?: string; readonly text: string }
  | {
      readonly type: 'text'
      readonly root?: string
      readonly splice: { readonly at: number; readonly remove: number; readonly insert: string }
    }
  | { readonly type: 'map'; readonly root?: string; readonly map: Readonly<Record<string, DocumentValue>> }
  /** Keys that are not named stay as they are. */
  | {
      readonly type: 'map'
      readonly root?: string
      readonly set: Readonly<Record<string, DocumentValue>>
      readonly remove?: readonly string[]
    }
  | { readonly type: 'list'; readonly root?: string; readonly list: readonly DocumentValue[] }
  | {
      readonly type: 'list'
      readonly root?: string
      readonly splice: { readonly at: number; readonly remove: number; readonly insert: readonly DocumentValue[] }
    }

/**
 * The nodes that an access list admits: those with a listed key, and those with the tier in one of the sandboxes (or in
 * none).
 */
export interface DocumentRuleInfo {
  readonly members: readonly NodeRef[]
  /** The least powerful tier that passes; null: none does by its tier. */
  readonly tier: TierText | null
  readonly sandboxes: readonly string[]
  readonly unsandboxed: boolean
}

/** The same as it is asked for. `members`: ids, names or unique prefixes. */
export interface DocumentRuleRequest {
  readonly members?: readonly string[]
  readonly tier?: TierText | null
  readonly sandboxes?: readonly string[]
  /** Default true. */
  readonly unsandboxed?: boolean
}

/** Readers and writers of a document. Its creator and the owner of the mesh always have both rights. */
export interface DocumentAccessInfo {
  readonly see: DocumentRuleInfo
  readonly write: DocumentRuleInfo
  readonly serial: number
  readonly by: NodeRef
}

/** The contribution of one member to a document, as far as this node has it. */
export interface DocumentWriter {
  readonly node: NodeRef
  /** Key (z32) of its stream. A member whose home was restored has several. */
  readonly stream: string
  readonly blocks: number
  /** The first stored block: earlier ones are in a snapshot. */
  readonly from: number
  readonly bytes: number
  readonly mayWrite: boolean
  /**
   * Why the stream ended for every member. Null while it is active, and while this node has not opened the document.
   */
  readonly stopped: string | null
}

/** One row of `doc ls`. */
export interface DocumentInfo {
  /** z32 of hash(mesh key, name). */
  readonly id: string
  readonly name: string
  readonly creator: NodeRef
  readonly createdAt: string
  /** Bytes of all streams that are here, and of the snapshot behind which they begin. */
  readonly bytes: number
  readonly blocks: number
  /** Members that have a stream in it. */
  readonly writers: number
  /** The rights of the caller. Documents that it may not see are not listed. */
  readonly may: { readonly write: boolean; readonly restrict: boolean }
  /** Are all streams kept here? False after `documents.forget`, and where {@link DocumentInfo.left} names some. */
  readonly following: boolean
  /** Why the name may deceive: for example invisible characters, or a likeness to another name. Absent: it does not. */
  readonly nameWarning?: string
  /** Streams that are not kept here, or no further, and why, one for each member and reason. Absent: none. */
  readonly left?: readonly { readonly node: NodeRef; readonly streams: number; readonly reason: string }[]
}

/** Storage that a member takes here for documents that this node does not use. */
export interface DocumentShareInfo {
  /** Bytes of its streams, in steps of 64 KiB. */
  readonly bytes: number
  /** The same of snapshots in documents that it created. */
  readonly snapshotBytes: number
  /** Bound of each of the two. */
  readonly maxBytes: number
  readonly maxDocuments: number
  /** Streams and snapshots that are not kept, or no further. */
  readonly leftOut: number
}

/** Contributions of a member that the document lacks. */
export interface DocumentGaps {
  /**
   * Members whose writing is not taken completely, with the reason; known once the document was opened here. Absent:
   * all is taken.
   */
  readonly skipped?: readonly { readonly node: NodeRef; readonly reason: string }[]
}

/** `documents.show`. */
export interface DocumentDetail extends DocumentInfo, DocumentGaps {
  /** null: unrestricted, so every member in no sandbox may see and write it. */
  readonly access: DocumentAccessInfo | null
  readonly streams: readonly DocumentWriter[]
}

/** The value of one shared type: text, object or list. */
export interface DocumentReading extends DocumentGaps {
  readonly id: string
  readonly name: string
  readonly type: DocumentType
  readonly root: string
  readonly value: DocumentValue
}

/**
 * A line of the watch `documents.live`, for a program with its own Y.Doc. Bytes are updates of Yjs (v1) and of
 * y-protocols' awareness. The first line is `open`. After `reset` the program must begin with a new Y.Doc and the
 * content of the line: a part of the old one was revoked.
 */
export type DocumentLiveEvent =
  | {
      readonly type: 'open' | 'reset'
      /** For calls of `documents.apply` and `documents.awareness`; ends with the watch. */
      readonly session: string
      /** Write with this clientID and no other; null without the right to write. */
      readonly clientId: number | null
      /** The whole document. */
      readonly update: Uint8Array
    }
  /** Updates of others, never those of `documents.apply` of this session. */
  | { readonly type: 'update'; readonly update: Uint8Array }
  | { readonly type: 'awareness'; readonly update: Uint8Array }
  /** The program was too slow and lost lines: open it again. */
  | { readonly type: 'gap'; readonly lost: number }

/** A part of a document by its content. `type` null: the content does not show it. */
export interface DocumentPartInfo {
  readonly root: string
  readonly type: DocumentType | 'xml' | 'mixed' | null
}

/** One change of a document: a block of a member's stream. */
export interface DocumentChangeInfo {
  /** Name of the change in this document: the first 8 characters of the stream's key, a slash and a number. */
  readonly entry: string
  /** Key (z32) of the stream. */
  readonly stream: string
  /** Its member: the node whose key signed the stream. */
  readonly by: NodeRef
  /** Time of the author's clock. */
  readonly at: string
  /** Number of characters, list values, keys and formatting marks written. */
  readonly added: number
  /** The same, deleted. */
  readonly removed: number
  readonly bytes: number
  /** Changed parts, at most 4; names are cut to 64 characters. */
  readonly parts: readonly DocumentPartInfo[]
}

/** `doc history`: changes that this node has, newest first. */
export interface DocumentHistoryInfo extends DocumentGaps {
  readonly id: string
  readonly name: string
  readonly changes: readonly DocumentChangeInfo[]
  /** Number of all changes that are here, listed or not. */
  readonly total: number
  /**
   * Blocks merged in a snapshot, whose changes cannot be listed or restored one by one; null: none. `since`: when this
   * node began to use the snapshot; null: not known.
   */
  readonly merged: { readonly blocks: number; readonly since: string | null } | null
}

/** A former state: after a change, and all changes before it in the history. */
export interface DocumentPast {
  /**
   * An entry of the history; or a time in ISO 8601. A time names the last change before the first one of a later time
   * by its author's clock.
   */
  readonly at: string
}

/** `doc show --at`. */
export interface FormerDocument {
  readonly id: string
  readonly name: string
  /** The change behind which it was so. */
  readonly change: DocumentChangeInfo
  /** Its parts with content. A part that cannot be read has a `fault` and the value null. */
  readonly parts: readonly (DocumentPartInfo & { readonly value: DocumentValue; readonly fault?: string })[]
}

/** `doc ls`. */
export interface DocumentList {
  readonly documents: readonly DocumentInfo[]
  /** Why there may be more documents, or more in them: of the log of the mesh, and of the store of documents. */
  readonly problems: readonly Problem[]
}

/** Calls about documents. `document` is a name or an id; one that the caller may not see is DOCUMENT_NOT_FOUND. */
export interface DocumentCalls {
  'documents.list': { params: Record<string, never>; result: DocumentList }
  'documents.show': { params: { readonly document: string }; result: DocumentDetail }
  /** Resolves when the mesh knows it. `created` false: it was there. */
  'documents.create': {
    params: { readonly name: string; readonly see?: DocumentRuleRequest; readonly write?: DocumentRuleRequest }
    result: DocumentDetail & { readonly created: boolean }
  }
  'documents.read': { params: { readonly document: string } & DocumentRoot; result: DocumentReading }
  /**
   * Resolves when the edit is durable here and on its way to others. `changed` is false when nothing had to change.
   * FORBIDDEN without the right to write, PAYLOAD_TOO_LARGE for a single value over 256 KiB that is no text, OVERLOADED
   * when the document is full. An edit over 256 KiB travels in several pieces; others may see the first ones for a
   * moment.
   */
  'documents.edit': {
    params: { readonly document: string; readonly edit: DocumentEdit }
    result: DocumentReading & { readonly changed: boolean }
  }
  /**
   * The last changes (`limit` 1..1,000, default 20). OVERLOADED when the stored streams have more than 16,384 blocks or
   * 64 MiB behind the snapshot.
   */
  'documents.history': {
    params: { readonly document: string; readonly limit?: number }
    result: DocumentHistoryInfo
  }
  /** INVALID_INPUT when `at` names no change that is here. */
  'documents.past': { params: { readonly document: string } & DocumentPast; result: FormerDocument }
  /**
   * Writes a change that makes the content equal to a former state, of all parts or of the part named `root`.
   * `restored` names the changed parts. CONFLICT for a part that cannot be restored: XML, formatted text, nested types.
   */
  'documents.restore': {
    params: { readonly document: string; readonly root?: string } & DocumentPast
    result: {
      readonly id: string
      readonly name: string
      readonly change: DocumentChangeInfo
      readonly restored: readonly DocumentPartInfo[]
    }
  }
  /**
   * This node stops following the document and removes its blocks, its own contributions too. Blocks that no other node
   * has are lost. The other nodes keep theirs. Opening or editing the document follows it again.
   */
  'documents.forget': {
    params: { readonly document: string }
    result: { readonly id: string; readonly name: string; readonly bytes: number }
  }
  /**
   * Removes the document from the mesh, for good; for its creator and the owner of the mesh. Nobody may see it any
   * more, all nodes remove their blocks after 10 minutes, and its name stays taken.
   */
  'documents.remove': {
    params: { readonly document: string }
    result: { readonly id: string; readonly name: string; readonly removed: true }
  }
  /**
   * Sets readers and writers; for its creator and the owner of the mesh. A former writer's earlier contributions stay,
   * later ones count nowhere. A former reader gets no new blocks, and keeps the received ones.
   */
  'documents.restrict': {
    params: { readonly document: string; readonly see: DocumentRuleRequest; readonly write: DocumentRuleRequest }
    result: DocumentDetail
  }
  /**
   * An update (v1) of a program that watches `documents.live`; it must have that session's clientID. At most 16 MiB,
   * less what a call may carry; over 256 KiB as `documents.edit`.
   */
  'documents.apply': {
    params: { readonly document: string; readonly session: string; readonly update: Uint8Array }
    result: { readonly applied: true }
  }
  /**
   * Presence of a program, removed when its session ends. At most 16 KiB; sent to members that are online, stored
   * nowhere.
   */
  'documents.awareness': {
    params: { readonly document: string; readonly session: string; readonly update: Uint8Array }
    result: { readonly told: true }
  }
}

/** Watches of documents. */
export interface DocumentWatches {
  /** The list, again at each change of it. */
  'documents.list': { params: Record<string, never>; item: DocumentList }
  /**
   * The value, again whenever it changed; nothing as long as others wrote it and nothing of it is here. A reader that
   * is behind gets the newest only.
   */
  'documents.read': { params: { readonly document: string } & DocumentRoot; item: DocumentReading }
  /**
   * `clientId`: the id of an earlier session that is over, for a program with unsent edits. It is given again unless
   * another program has it, or had it since the node started; then the session gets another one.
   */
  'documents.live': { params: { readonly document: string; readonly clientId?: number }; item: DocumentLiveEvent }
}
