// swift-tools-version: 6.2
import PackageDescription

// Campaigns over encrypted stores need a build with encryption, which takes minutes longer.
let encrypts = Context.environment["TIDEMARK_ENCRYPTED"] == "1"

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

// The long campaigns against the store; `Tools/torture` builds and runs them.
let package = Package(
  name: "campaigns",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "torture", targets: ["torture"])],
  dependencies: [
    .package(
      name: "tidemark", path: "../..", traits: encrypts ? [.defaults, "Encryption"] : [.defaults]),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    // The root package has these files, too, as a target that its tests use.
    .target(
      name: "CacheTrials",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkHTTPCache", package: "tidemark"),
        .product(name: "TidemarkSync", package: "tidemark"),
        .product(name: "TidemarkTestKit", package: "tidemark"),
      ],
      path: "Sources/CacheCampaigns",
      swiftSettings: strict),
    .executableTarget(
      name: "torture",
      dependencies: [
        "CacheTrials",
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkTestKit", package: "tidemark"),
        .product(name: "TidemarkSyncTestKit", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
