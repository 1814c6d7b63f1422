public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// One change as ``RequestPeer`` hands it to the program's back end.
public struct RequestChange: Sendable, Hashable {
  /// For the header `Idempotency-Key`: a UUID of version 8 in lower case. The same change has the
  /// same key whenever it is sent, also by a copy of the store, and no other change ever has it;
  /// only when it is sent again because it won a conflict it gets another one.
  public var idempotencyKey: String
  /// The replica that wrote it, and its sequence there.
  public var operation: OperationID
  /// The operation of the change.
  public var kind: ChangeKind
  /// To which key.
  public var key: Key
  /// The content that the key gets; nothing for a delete.
  public var content: SyncContent
  /// When it was committed, by the writer's clock.
  public var commitTime: Timestamp
  /// The writer's own time.
  public var time: Timestamp?
  /// The back end's name for the key; nil when it has not said so yet, as before it has been
  /// created there, and after it was deleted there.
  public var alias: Alias?
}

/// The back end's decision about a change.
public enum RequestOutcome: Sendable, Hashable {
  /// It is taken, now or when it came before.
  case applied
  /// The same, and so the back end calls the key from now on: the id that it has given to what was
  /// created. It comes along with every later change of the key, until the key is deleted.
  ///
  /// A change whose alias is empty, too long, or that of another key is parked.
  case appliedAs(Alias)
  /// The back end held the same already.
  case duplicate
  /// The back end holds something else; the store's resolver decides. Without a state the peer
  /// asks for it.
  case conflict(RequestState?)
  /// It will never be taken, for the reason given: the change is parked.
  case rejected(Rejection)
  /// Not now. The others go on; it is tried again after that time, by default 30 seconds and at
  /// most a day, and after a restart at once.
  case retryLater(after: Duration? = nil)
}

/// The content of a key at the back end.
public enum RequestState: Sendable, Hashable {
  /// This, and when it was given that, by the back end's clock, for resolvers that go by it. An
  /// ETag or a version has its place in the content's `hash`, which is kept with the entry.
  case value(SyncContent, time: Timestamp? = nil)
  /// Nothing, or nothing any more.
  case absent
}

/// Changes that the back end has, since a token.
public struct RequestPage: Sendable, Hashable {
  /// One of them.
  public struct Change: Sendable, Hashable {
    /// The key; nil where the back end knows nothing of keys, and ``alias`` says which it is.
    public var key: Key?
    /// The back end's name for the key, if it has ids of its own.
    public var alias: Alias?
    /// The key's content now.
    public var state: RequestState
    /// The idempotency key with which the back end got it, if it keeps that: so a store knows its
    /// own changes, as long as they are in its log. To be left out when the back end has made
    /// something else of the change.
    public var idempotencyKey: String?
    /// When the key was deleted; for a value its state says when. Nil when the back end does not.
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

    /// A change of what the back end calls so. It is that key's to which the back end has given the
    /// alias; what nobody here has heard of gets a new key (`newKey` of ``RequestPeer``).
    public init(
      alias: Alias, state: RequestState, idempotencyKey: String? = nil, time: Timestamp? = nil
    ) {
      self.time = time
      self.alias = alias
      self.state = state
      self.idempotencyKey = idempotencyKey
    }
  }

  /// In the order in which they are to be taken.
  public var changes: [Change]
  /// The token to ask with the next time: anything that the back end understands.
  public var token: String
  /// Whether there are more already: then the token is one that no page of this list has had.
  public var hasMore: Bool

  /// A page.
  public init(changes: [Change], token: String, hasMore: Bool = false) {
    self.changes = changes
    self.token = token
    self.hasMore = hasMore
  }
}
