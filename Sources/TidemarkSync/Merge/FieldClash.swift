public import TidemarkEngine

/// A field that both sides have changed, each in its way, or hold differently without a base.
public struct FieldClash: Sendable, Hashable {
  /// The outcome for the field.
  public enum Choice: Sendable, Hashable {
    /// The value of this store.
    case local
    /// The value of the feed.
    case remote
    /// A JSON text made of both. One that is no JSON counts as ``fallback``.
    case value([UInt8])
    /// The fallback decides on the whole value.
    case fallback
  }

  /// The names from the outermost object to the field.
  public var path: [String]
  /// The field's JSON text in what both changes were made upon; nil when it was not there, or
  /// nobody knows any more.
  public var base: [UInt8]?
  /// Its JSON text in this store; nil when it was taken away.
  public var local: [UInt8]?
  /// Its JSON text in the feed; nil when it was taken away.
  public var remote: [UInt8]?
  /// When the local change was committed, as in ``Conflict/localTime``.
  public var localTime: Timestamp
  /// When the remote change was committed, as in ``Conflict/remoteTime``.
  public var remoteTime: Timestamp

  /// A clash.
  public init(
    path: [String], base: [UInt8]?, local: [UInt8]?, remote: [UInt8]?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp = Timestamp(seconds: 0)
  ) {
    self.path = path
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// Decides fields that both sides have changed. It must be a pure function, as a resolver is.
public struct FieldClashRule: Sendable {
  /// Nil to do as the fallback says of the whole value.
  private let body: (@Sendable (FieldClash) -> FieldClash.Choice)?

  /// A rule of the program's own.
  /// - Parameter body: decides, by the path for example; a pure function.
  public init(_ body: @escaping @Sendable (FieldClash) -> FieldClash.Choice) {
    self.body = body
  }

  private init() { body = nil }

  /// Each such field is taken from the side that the fallback would let win with the whole value.
  /// Where the fallback asks, keeps both or merges, it decides on the whole value.
  public static let asFallback = FieldClashRule()
  /// Such fields keep what this store holds.
  public static let local = FieldClashRule { _ in .local }
  /// Such fields get what the feed holds.
  public static let remote = FieldClashRule { _ in .remote }
  /// Such fields are taken from the change that was committed later, by its writer's clock.
  public static let latest = FieldClashRule { $0.localTime >= $0.remoteTime ? .local : .remote }

  func choice(_ clash: FieldClash, like resolution: @autoclosure () -> Resolution)
    -> FieldClash.Choice
  {
    if let body { return body(clash) }
    return switch resolution() {
    case .local: .local
    case .remote: .remote
    case .merged, .both, .ask: .fallback
    }
  }
}
