#if canImport(Darwin)
  public import Foundation
#else
  public import FoundationEssentials
#endif
public import Tidemark

extension Date: IndexValue {
  /// The index term of the date: earlier dates sort first.
  public var indexTerm: IndexTerm { .time(Timestamp(self)) }
}

extension UUID: IndexValue {
  /// The index term of the UUID: it sorts by the sixteen bytes, in the order of RFC 9562.
  public var indexTerm: IndexTerm { .bytes(bytes) }
}
