/// How much superseded history a store keeps. Nothing given: everything is kept.
public struct Retention: Sendable, Hashable {
  /// Superseded entries older than this many seconds may go.
  public var ageSeconds: UInt64?
  /// Superseded entries may go, oldest first, while the log is larger than this many bytes.
  public var bytes: UInt64?
  /// Of every key at most this many versions are kept, the newest among them.
  public var versionsPerKey: UInt32?

  /// Creates a retention.
  /// - Parameters:
  ///   - ageSeconds: superseded entries older than this may go.
  ///   - bytes: superseded entries may go while the log is larger than this.
  ///   - versionsPerKey: of every key at most this many versions are kept, at least 1.
  public init(ageSeconds: UInt64? = nil, bytes: UInt64? = nil, versionsPerKey: UInt32? = nil) {
    self.ageSeconds = ageSeconds
    self.bytes = bytes
    self.versionsPerKey = versionsPerKey
  }

  /// Every version of everything.
  public static let everything = Retention()
}
