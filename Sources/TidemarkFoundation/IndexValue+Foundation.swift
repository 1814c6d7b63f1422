#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Date: IndexValue {
  /// By the time.
  public var indexTerm: IndexTerm { .time(Timestamp(self)) }
}

extension UUID: IndexValue {
  /// By the sixteen bytes, as RFC 9562 orders them.
  public var indexTerm: IndexTerm { .bytes(bytes) }
}
