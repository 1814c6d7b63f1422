/// How much superseded history a store keeps: entries that a newer one of their key has replaced.
/// Without any limit everything is kept; an entry may go as soon as one of the limits lets it go.
public struct Retention: Sendable, Hashable {
  /// Superseded entries older than this may go; it counts in whole seconds, rounded up.
  public var age: Duration? {
    get { ageSeconds.map { .seconds(Int64(clamping: $0)) } }
    set { ageSeconds = newValue?.wholeSeconds }
  }
  /// `age` in whole seconds, as MANIFEST stores it.
  package var ageSeconds: UInt64?
  /// Superseded entries may go, oldest first, while the log is larger than this many bytes.
  public var bytes: UInt64?
  /// At most this many versions of every key are kept, the newest among them.
  public var versionsPerKey: UInt32?

  /// Creates a retention.
  /// - Parameters:
  ///   - age: superseded entries older than this may go.
  ///   - bytes: superseded entries may go while the log is larger than this.
  ///   - versionsPerKey: of every key at most this many versions are kept, at least 1.
  public init(age: Duration? = nil, bytes: UInt64? = nil, versionsPerKey: UInt32? = nil) {
    self.init(ageSeconds: age?.wholeSeconds, bytes: bytes, versionsPerKey: versionsPerKey)
  }

  package init(ageSeconds: UInt64?, bytes: UInt64? = nil, versionsPerKey: UInt32? = nil) {
    self.ageSeconds = ageSeconds
    self.bytes = bytes
    self.versionsPerKey = versionsPerKey
  }

  /// Every version of everything.
  public static let everything = Retention()
}
