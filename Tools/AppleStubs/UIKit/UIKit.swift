// What an app with a store uses of Apple's framework UIKit, for Tools/check-apple. Signatures are
// those of developer.apple.com/documentation/uikit (UIApplication, UIBackgroundTaskIdentifier);
// nothing works. Like Apple's, it shows Foundation to files that import it.
@_exported public import AppleFoundation
public import Foundation

public struct UIBackgroundTaskIdentifier: RawRepresentable, Hashable, Sendable {
  public static let invalid = UIBackgroundTaskIdentifier(rawValue: 0)
  public let rawValue: Int

  public init(rawValue: Int) { self.rawValue = rawValue }
}

@MainActor
open class UIApplication {
  public enum State: Int, Sendable {
    case active
    case inactive
    case background
  }

  public class var shared: UIApplication { UIApplication() }

  nonisolated public class var didBecomeActiveNotification: NSNotification.Name { name }
  nonisolated public class var didEnterBackgroundNotification: NSNotification.Name { name }
  nonisolated public class var didReceiveMemoryWarningNotification: NSNotification.Name { name }
  nonisolated public class var willEnterForegroundNotification: NSNotification.Name { name }
  nonisolated public class var willResignActiveNotification: NSNotification.Name { name }
  nonisolated public class var willTerminateNotification: NSNotification.Name { name }
  nonisolated private class var name: NSNotification.Name { NSNotification.Name("") }

  public var applicationState: State { .active }
  public var backgroundTimeRemaining: TimeInterval { 0 }

  nonisolated public func beginBackgroundTask(
    withName taskName: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
  ) -> UIBackgroundTaskIdentifier {
    .invalid
  }

  nonisolated public func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
}
