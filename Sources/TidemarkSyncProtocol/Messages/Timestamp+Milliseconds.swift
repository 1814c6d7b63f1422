package import Tidemark

extension Timestamp {
  /// Milliseconds since 1970; 0 for an earlier time.
  package var sinceEpoch: UInt64 { UInt64(clamping: max(0, milliseconds)) }
}
