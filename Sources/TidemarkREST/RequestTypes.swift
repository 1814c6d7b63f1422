public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// One change that a ``RequestPeer`` sends to the program's back end.
public struct RequestChange: Sendable, Hashable {
  /// The value for the header `Idempotency-Key`: a UUID of version 8 in lower case. A change has
  /// the same key whenever it is sent, also by a copy of the store, and no other change ever has
  /// it. Only a change that is sent again after it won a conflict gets another key.
  public var idempotencyKey: String
  /// The id of the write: the replica that made it, and its sequence there.
  public var operation: OperationID
  /// Whether the change puts or deletes its key.
  public var kind: ChangeKind
  /// The key that the change puts or deletes.
  public var key: Key
  /// The content that the key gets; empty for a delete.
  public var content: SyncContent
  /// When the writer committed the change, by the writer's clock.
  public var commitTime: Timestamp
  /// The time that the writer's program gave the entry; nil if it gave none.
  public var time: Timestamp?
  /// The id that the back end has given to the key's record; nil before its create is answered, and
  /// after it was deleted.
  public var alias: KeyAlias?
}

/// The back end's decision about a change.
public enum RequestOutcome: Sendable, Hashable {
  /// The back end has applied the change, now or by an earlier request with its idempotency key.
  case applied
  /// The back end has applied the change, and has given this id to the key's record. The peer
  /// passes the alias with every later change of the key, until the key is deleted.
  ///
  /// A change whose alias is empty, too long, or that of another key is parked.
  case appliedAs(KeyAlias)
  /// The back end already had the same content for the key.
  case duplicate
  /// The back end has other content for the key, and the store's resolver decides. Pass the back
  /// end's content, or nil to let the peer ask for it.
  case conflict(RequestState?)
  /// The back end refuses the change for good, for this reason. The change is parked.
  case rejected(SyncRejection)
  /// The back end cannot apply the change now. The peer sends it again after this time: by default
  /// 30 seconds, at most a day, and at once after a restart. Other changes go on meanwhile.
  case retryLater(after: Duration? = nil)
}

/// The content of a key at the back end.
public enum RequestState: Sendable, Hashable {
  /// The key has this content. `time` is when it was written, by the back end's clock, for
  /// resolvers that compare times. Put an ETag or version into the content's `hash`, which the
  /// store keeps with the entry.
  case value(SyncContent, time: Timestamp? = nil)
  /// The back end has no record for the key, or a deleted one.
  case absent
}

/// A page of the back end's list: changes since a token.
public struct RequestPage: Sendable, Hashable {
  /// The current state of one record that has changed.
  public struct Change: Sendable, Hashable {
    /// The key of the record; nil if the back end does not store keys, and ``alias`` identifies the
    /// record.
    public var key: Key?
    /// The id that the back end has given to the record; nil if it gives no ids.
    public var alias: KeyAlias?
    /// The current content of the record, or that it is deleted.
    public var state: RequestState
    /// The idempotency key of the request that wrote this state, if the back end stores it: by it a
    /// store recognises its own changes, as long as they are in its log. Nil if the back end has
    /// stored another content than the request's.
    public var idempotencyKey: String?
    /// When the record was deleted; nil if unknown. The time of a value is in ``state``.
    public var time: Timestamp?

    /// Creates a change of a record whose key the back end knows.
    /// - Parameters:
    ///   - key: the key of the record.
    ///   - state: the current content of the record, or that it is deleted.
    ///   - idempotencyKey: the idempotency key of the request that wrote the state; nil if unknown.
    ///   - alias: the id that the back end has given to the record; nil for none.
    ///   - time: when the record was deleted; nil if unknown.
    public init(
      key: some BytesConvertible, state: RequestState, idempotencyKey: String? = nil,
      alias: KeyAlias? = nil, time: Timestamp? = nil
    ) {
      self.time = time
      self.key = Key(key)
      self.alias = alias
      self.state = state
      self.idempotencyKey = idempotencyKey
    }

    /// A change of the record with an alias. Its key is the one to which the back end has given the
    /// alias; a record that the store does not know gets a key by `newKey` of ``RequestPeer``.
    public init(
      alias: KeyAlias, state: RequestState, idempotencyKey: String? = nil, time: Timestamp? = nil
    ) {
      self.time = time
      self.alias = alias
      self.state = state
      self.idempotencyKey = idempotencyKey
    }
  }

  /// The changes of the page, in the order in which the store must apply them.
  public var changes: [Change]
  /// The token for the next call of `fetch`: any text that the back end understands.
  public var token: String
  /// Whether more pages follow at once. If so, the page's token must differ from the tokens of all
  /// earlier pages of the list.
  public var hasMore: Bool

  /// Creates a page of the back end's changes.
  /// - Parameters:
  ///   - changes: the changes, in the order in which the store must apply them.
  ///   - token: the token for the next call of `fetch`.
  ///   - hasMore: whether more pages follow at once.
  public init(changes: [Change], token: String, hasMore: Bool = false) {
    self.changes = changes
    self.token = token
    self.hasMore = hasMore
  }
}
