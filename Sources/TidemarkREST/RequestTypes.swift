public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// One change that a ``RequestPeer`` sends to the program's back end.
public struct RequestChange: Sendable, Hashable {
  /// For the header `Idempotency-Key`: a UUID of version 8 in lower case. A change has the same key
  /// whenever it is sent, also by a copy of the store, and no other change ever has it. Only a
  /// change that is sent again after it won a conflict gets another key.
  public var idempotencyKey: String
  /// The replica that wrote it, and its sequence there.
  public var operation: OperationID
  /// The operation of the change.
  public var kind: ChangeKind
  /// The key.
  public var key: Key
  /// The content that the key gets; empty for a delete.
  public var content: SyncContent
  /// When it was committed, by the writer's clock.
  public var commitTime: Timestamp
  /// The time that the program gave the entry, if any.
  public var time: Timestamp?
  /// The id that the back end has given to the key's record; nil before its create is answered, and
  /// after it was deleted.
  public var alias: Alias?
}

/// The back end's decision about a change.
public enum RequestOutcome: Sendable, Hashable {
  /// It is applied, now or by an earlier request with its idempotency key.
  case applied
  /// It is applied, and the back end has given this id to the key's record. The alias is passed
  /// with every later change of the key, until the key is deleted.
  ///
  /// A change whose alias is empty, too long, or that of another key is parked.
  case appliedAs(Alias)
  /// The back end held the same already.
  case duplicate
  /// The back end holds something else; the store's resolver decides. Without a state the peer
  /// asks for it.
  case conflict(RequestState?)
  /// It is refused for good, for the reason given: the change is parked.
  case rejected(Rejection)
  /// Try again after this time, by default 30 seconds and at most a day, and after a restart at
  /// once. Other changes go on meanwhile.
  case retryLater(after: Duration? = nil)
}

/// The content of a key at the back end.
public enum RequestState: Sendable, Hashable {
  /// A content, and when it was written by the back end's clock, for resolvers that compare times.
  /// An ETag or version belongs in the content's `hash`, which is stored with the entry.
  case value(SyncContent, time: Timestamp? = nil)
  /// No record, or a deleted one.
  case absent
}

/// A page of the back end's list: changes since a token.
public struct RequestPage: Sendable, Hashable {
  /// The current state of one record that has changed.
  public struct Change: Sendable, Hashable {
    /// The key; nil where the back end does not store keys, and ``alias`` identifies the record.
    public var key: Key?
    /// The id that the back end has given to the record, if it gives ids.
    public var alias: Alias?
    /// The key's content now.
    public var state: RequestState
    /// The idempotency key of the request that wrote this state, if the back end stores it: by it a
    /// store recognises its own changes, as long as they are in its log. Nil if the back end has
    /// stored another content than the request's.
    public var idempotencyKey: String?
    /// When the key was deleted, if known; the time of a value is in its state.
    public var time: Timestamp?

    /// A change of a key.
    public init(
      key: some BytesConvertible, state: RequestState, idempotencyKey: String? = nil,
      alias: Alias? = nil, time: Timestamp? = nil
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
      alias: Alias, state: RequestState, idempotencyKey: String? = nil, time: Timestamp? = nil
    ) {
      self.time = time
      self.alias = alias
      self.state = state
      self.idempotencyKey = idempotencyKey
    }
  }

  /// In the order in which they must be applied.
  public var changes: [Change]
  /// The token for the next call of `fetch`: any text that the back end understands.
  public var token: String
  /// Whether more pages follow now. Then the token must be one that no page of this list has had.
  public var hasMore: Bool

  /// A page.
  public init(changes: [Change], token: String, hasMore: Bool = false) {
    self.changes = changes
    self.token = token
    self.hasMore = hasMore
  }
}
