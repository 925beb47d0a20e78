console.log("slotkeeper");
