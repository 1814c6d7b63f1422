/// When a write's caller is answered.
public enum Durability: Sendable, Hashable {
  /// At once. The bytes reach the kernel within 50 ms or 1 MiB; a crash of the process may lose
  /// the last moments.
  case async
  /// When the bytes are with the kernel: survives the end of the process, not a power cut. A
  /// sync follows within a second or 4 MiB.
  case buffered
  /// When the bytes are on the disk: survives a power cut.
  case durable
}
