/// The superseded history that a store keeps: entries that a newer entry of their key has replaced.
/// Without a limit everything is kept. With several limits an entry may go as soon as one of them
/// lets it go.
public struct Retention: Sendable, Hashable {
  /// The age from which superseded entries may go, in whole seconds, rounded up; nil for no limit.
  public var age: Duration? {
    get { ageSeconds.map { .seconds(Int64(clamping: $0)) } }
    set { ageSeconds = newValue?.wholeSeconds }
  }
  /// `age` in whole seconds, as MANIFEST stores it.
  package var ageSeconds: UInt64?
  /// The size of the log, in bytes, above which superseded entries may go, the oldest first; nil
  /// for no limit.
  public var bytes: UInt64?
  /// The most versions of a key that are kept, the newest among them; nil for no limit.
  public var versionsPerKey: UInt32?

  /// Creates a retention. Without parameters it keeps everything.
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

  /// The retention that keeps every version of every key.
  public static let everything = Retention()
}
