/// Looks at what replicas push before it is taken, and may refuse it.
///
/// ```swift
/// let titles = SyncValidator(prefix: Array("note/".utf8)) { change, _ in
///   change.content.value.count > 1_000_000
///     ? Rejection(code: "tooLong", message: "A note has a million bytes at most.") : nil
/// }
/// ```
/// A refused change is never tried again: the writer keeps it, listed with the reason, until a
/// person decides. Validators must be quick, and decide by what they are given alone: a batch may
/// be judged again.
public struct SyncValidator: Sendable {
  /// For the keys that begin with it.
  public var prefix: [UInt8]
  /// Gives the reason to refuse a change of a replica; nil lets it pass.
  public var check: @Sendable (PushedChange, ReplicaID) -> Rejection?

  /// A validator.
  /// - Parameters:
  ///   - prefix: of the keys that it looks at; empty for all.
  ///   - check: gives the reason to refuse a change; nil lets it pass.
  public init(
    prefix: [UInt8] = [], check: @escaping @Sendable (PushedChange, ReplicaID) -> Rejection?
  ) {
    self.prefix = prefix
    self.check = check
  }
}
