// What the sources use of Apple's framework Network, for Tools/check-apple. Signatures are those of
// developer.apple.com/documentation/network (NWPath, NWPathMonitor); nothing works.

/// NWPath.h, as Swift sees it.
public struct NWPath: Sendable {
  public enum Status: Sendable {
    case satisfied
    case unsatisfied
    case requiresConnection
  }

  public var status: Status { .unsatisfied }
  public var isExpensive: Bool { false }
  public var isConstrained: Bool { false }
}

/// A sequence of paths since iOS 17 and macOS 14.
public final class NWPathMonitor: AsyncSequence, Sendable {
  public typealias Element = NWPath
  public typealias Failure = Never

  public struct Iterator: AsyncIteratorProtocol {
    public mutating func next() async -> NWPath? { nil }
  }

  public init() {}

  public func makeAsyncIterator() -> Iterator { Iterator() }
}
