/// The moment at which a write returns, and so the failures that the write survives from then on.
public enum Durability: Sendable, Hashable {
  /// The write returns at once. Its bytes reach the kernel within 50 ms or 1 MiB. A crash of the
  /// process may lose the last moments.
  case async
  /// The write returns when its bytes are with the kernel. It survives the end of the process, but
  /// not a power cut. A sync follows within a second or 4 MiB.
  case buffered
  /// The write returns when its bytes are on the disk. It survives a power cut.
  case durable
}
