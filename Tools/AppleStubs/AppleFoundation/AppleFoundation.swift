// What Apple's Foundation has and that of other systems has elsewhere or not at all.
// Tools/check-apple adds it to files of modules that import Foundation. Signatures are those of
// developer.apple.com/documentation/foundation (URLResourceValues, ProcessInfo); nothing works.
@_exported public import Foundation
@_exported public import FoundationNetworking

extension URLResourceKey {
  public static let volumeAvailableCapacityForImportantUsageKey = URLResourceKey(rawValue: "")
}

extension URLResourceValues {
  public var volumeAvailableCapacityForImportantUsage: Int64? { nil }
}

extension ProcessInfo {
  public func performExpiringActivity(
    withReason reason: String, using block: @escaping @Sendable (Bool) -> Void
  ) {}
}
